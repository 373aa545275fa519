//! Converts saves of whole states to operations that preserve concurrent changes.

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
