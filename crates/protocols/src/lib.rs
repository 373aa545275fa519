//! Third-party protocols, translated into calls to the services. A protocol has no state and no rules of its own.

pub mod agentuity;
mod frame;
mod leading;
pub mod mcp;
pub mod modelrelay;
mod object;
pub mod openai;
mod prefer;
pub mod use_agent;
