//! Upstreams: the servers that run the models for answers and images.
//!
//! Each kind of upstream is a codec without rules of its own. It writes the body of a request for a
//! [`Question`](threadkeep_responses::Question), and reads the answer. JSON stays text, so values that the codec does not
//! interpret are sent unchanged. A streamed answer equals a whole one. Connections, deadlines, limits and retries are the
//! same for all kinds.
//!
//! Logs, errors and debug forms never contain an upstream's address, key or body, with one exception: the message of a 400,
//! which concerns the caller and is returned to it.

mod answer;
mod anthropic;
mod client;
mod codec;
mod content;
mod count;
mod draft;
mod json;
mod names;
mod openai_chat;
mod openai_images;
mod openai_responses;
mod parameters;
mod retry;
mod settings;

pub use anthropic::AnthropicMessages;
pub use client::HttpClient;
pub use openai_chat::OpenAiChat;
pub use openai_images::{OpenAiImages, UpstreamImage};
pub use openai_responses::OpenAiResponses;
pub use settings::{
    UpstreamKey, UpstreamKeyError, UpstreamSettings, UpstreamUrl, UpstreamUrlError,
};
