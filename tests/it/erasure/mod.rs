//! The erasure of owners, from the request to the last byte in the store.

mod crashes;
mod crowd;
mod proof;
mod replica;
