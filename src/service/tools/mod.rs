//! Tools that models call to keep state: keys with values, and a task list.

mod arguments;
mod definitions;
mod mistake;
mod request;
mod schema;
mod scratch;
#[cfg(test)]
mod tests;
mod tool;
mod toolbox;

pub use definitions::{Format, UnknownFormat, definition, definitions};
pub use tool::{Tool, UnknownTool};
pub use toolbox::{Answered, Call, Outcome, Toolbox};
