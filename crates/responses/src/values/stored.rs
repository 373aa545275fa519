//! The stored form of values: JSON.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use threadkeep_store::StoreError;

/// The stored form of a value.
pub(crate) fn to_bytes(value: &impl Serialize) -> Bytes {
    let json = serde_json::to_vec(value).expect("stored values have text for keys");
    json.into()
}

/// Reads a stored value.
///
/// # Errors
/// [`StoreError::Corrupt`], with that name of the value, if this version has not written it.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], name: &'static str) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|_| StoreError::Corrupt(name))
}
