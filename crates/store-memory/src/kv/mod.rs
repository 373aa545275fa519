mod answers;
pub(super) mod spaces;
mod store;
