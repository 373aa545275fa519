//! Protocols of others, spoken by their own clients where there are some.

mod agentuity;
mod mcp;
mod modelrelay;
mod openai;
mod use_agent;
