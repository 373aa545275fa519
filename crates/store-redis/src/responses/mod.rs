mod replies;
mod store;
