//! The tests of the library, a module for each part of it. They are one program, because it takes far less time to
//! build than a program for each file. What counts allocations or looks at the clock has a process of its own beside
//! this folder.

mod accelerated;
mod accuracy;
mod adaptive;
mod annealing;
#[cfg(any(feature = "ndarray", feature = "faer"))]
mod arrays;
mod bad_input;
mod barycenter;
mod certificates;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod descent;
mod designs;
mod examples;
mod features;
mod gradients;
mod ground;
mod maps;
mod memory;
mod nystrom;
mod observer;
mod oracles;
mod plan;
mod polish;
mod sampled;
mod scales;
mod solvers;
mod threads;
mod two_sample;
mod unbalanced;
