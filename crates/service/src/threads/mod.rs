//! Reads and writes of threads.

pub(super) mod change;
pub(super) mod effort;
mod patch;
mod read;
pub(super) mod write;
