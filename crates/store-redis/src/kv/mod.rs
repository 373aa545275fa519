mod entry_list;
pub(super) mod entry_text;
mod idle;
pub(super) mod known;
mod namespace_list;
mod namespace_usage;
mod store;
