//! Tools that change no state of this service: web search, web pages, images.

mod arguments;
mod tool;

pub use arguments::StatelessCall;
pub use arguments::{WebFetch, WebSearch};
pub use tool::StatelessTool;
