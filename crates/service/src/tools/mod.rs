//! Tools that models use to store state: key-value pairs and a task list.

mod arguments;
mod definitions;
mod mistake;
mod output;
mod request;
mod schema;
mod scratch;
mod stateless;
#[cfg(test)]
mod tests;
mod tool;
mod toolbox;

pub use definitions::{Format, UnknownFormat, definition, definitions};
pub use mistake::of_refusal;
pub use scratch::scratch;
pub use stateless::StatelessCall;
pub use stateless::{StatelessTool, WebFetch, WebSearch};
pub use tool::{Tool, UnknownTool};
pub use toolbox::{Answered, Call, Outcome, Toolbox};
