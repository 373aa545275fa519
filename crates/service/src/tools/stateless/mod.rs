//! Tools that do not store state: web search, page fetching and image generation.

mod arguments;
mod tool;

pub use arguments::StatelessCall;
pub use arguments::{WebFetch, WebSearch};
pub use tool::StatelessTool;
