//! The erasure of owners, from the request to the last byte in the store.

#[cfg(feature = "redis")]
mod crashes;
mod crowd;
#[cfg(feature = "redis")]
mod proof;
#[cfg(feature = "redis")]
mod replica;
