pub(super) mod calls;
pub(super) mod mcp_urls;
mod messages;
mod schemas;
pub(super) mod single;
