pub(super) mod all;
mod feed;
pub(super) mod of_thread;
mod query;
mod visible;
