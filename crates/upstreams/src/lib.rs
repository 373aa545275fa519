//! Clients for upstreams, the servers whose models generate answers and images.
//!
//! Each kind of upstream has a codec that writes the request body for a [`Question`](threadkeep_responses::Question)
//! and reads the answer. JSON values that a codec does not interpret are sent unchanged. An answer is the same whether
//! or not it is streamed. All kinds share the code for connections, deadlines, limits and retries.
//!
//! Logs, errors and debug output never contain an upstream's address, key or body. The only exception is the error
//! message of a 400 response, which is returned to the caller.

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
