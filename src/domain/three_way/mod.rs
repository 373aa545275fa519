//! Saves of whole states by clients that work on copies, as operations that lose nothing of others.

mod arrays;
mod given;
mod javascript;
mod merge;

pub use given::Given;
pub use merge::ThreeWay;
