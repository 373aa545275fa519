//! Third-party protocols, translated into calls to the services. Protocols do not have their own state or rules.

pub mod agentuity;
mod frame;
mod leading;
pub mod mcp;
pub mod modelrelay;
mod object;
pub mod openai;
mod prefer;
pub mod use_agent;
