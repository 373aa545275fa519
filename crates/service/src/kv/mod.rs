pub(super) mod batches;
pub(super) mod bodies;
pub(super) mod namespaces;
pub(super) mod ranking;
