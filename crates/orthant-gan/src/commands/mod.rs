//! What the command does, one file a subcommand.

pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod evaluate;
pub(crate) mod kernel_table;
pub(crate) mod log;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod train;
