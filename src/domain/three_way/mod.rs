//! Saves of whole states by clients that work on copies, as operations that lose nothing of others.

mod arrays;
mod basis;
#[cfg(test)]
mod fuzz;
mod given;
mod javascript;
mod merge;
mod seen;

pub use basis::Sent;
pub use given::Given;
pub use merge::ThreeWay;
