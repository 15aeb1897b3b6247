//! The command, as a person runs it: one program of tests, a file a command.

mod barycenter;
#[cfg(unix)]
mod bench;
mod common;
mod compare;
mod costs;
mod demo;
mod door;
mod flow;
mod formats;
#[cfg(target_os = "linux")]
mod hostile;
mod map;
mod report;
mod sampled;
mod solve;
mod two_sample;
mod usage;
