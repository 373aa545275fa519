//! Third-party protocols, translated to calls of the services. A protocol owns no state and no rules.

pub mod agentuity;
mod frame;
mod leading;
pub mod mcp;
pub mod modelrelay;
mod object;
pub mod openai;
mod prefer;
pub mod use_agent;
