//! Stores values as JSON.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use threadkeep_domain::Outcome;
use threadkeep_store::StoreError;

pub(crate) trait Stored: Serialize + DeserializeOwned {
    /// Describes the value in errors.
    const NAME: &'static str;

    fn to_bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self).expect("stored values have text for keys");
        json.into()
    }

    /// Parses the stored form. Fails with [`StoreError::Corrupt`] if this version cannot read it.
    fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes).map_err(|_| StoreError::Corrupt(Self::NAME))
    }
}

impl Stored for Outcome {
    const NAME: &'static str = "the answer of a response";
}
