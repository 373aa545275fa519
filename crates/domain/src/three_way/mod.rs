//! Saves of whole states by clients that work on copies, as operations that lose nothing of others.

mod arrays;
mod basis;
#[cfg(test)]
mod fuzz;
mod javascript;
mod merge;
mod seen;
mod snapshot;

pub use basis::Sent;
pub use merge::ThreeWay;
pub use snapshot::Snapshot;
