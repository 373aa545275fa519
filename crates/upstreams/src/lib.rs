//! Upstreams: the servers whose models the loop asks, for answers and for images.
//!
//! Each kind of upstream is a codec, "to bytes and back, no rules": it makes the body of a request from a
//! [`Question`](threadkeep_responses::Question) and reads the answer. JSON stays text, so values that the codec
//! need not understand go upstream unchanged. An answer is the same whether it comes whole or as a stream of events.
//! Connections, deadlines, limits and retries are the same for all kinds.
//!
//! Logs, errors and debug forms contain nothing of an upstream's address, key or body. The one exception is the message
//! of a 400, which concerns the caller and goes back to it.

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
