mod arguments;
mod compactions;
pub(super) mod images;
pub(super) mod replies;
mod segments;
mod store;
