pub(super) mod entry;
mod store;
