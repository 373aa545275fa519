//! Tools that change no state of this service: web search, pages of the web, images.

mod arguments;
mod tool;

pub use arguments::StatelessCall;
pub use arguments::{WebFetch, WebSearch};
pub use tool::StatelessTool;
