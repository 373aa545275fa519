mod agentuity;
mod mcp;
mod modelrelay;
mod openai;
mod use_agent;
