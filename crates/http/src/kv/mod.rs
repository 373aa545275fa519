mod batch_bodies;
pub(super) mod batches;
pub(super) mod content;
pub(super) mod entries;
pub(super) mod namespaces;
mod object;
mod path;
mod query;
mod write;
