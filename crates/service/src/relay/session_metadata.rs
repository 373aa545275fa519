//! Metadata of a session: an object whose values are stored unchanged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ServiceError;
use threadkeep_domain::Refusal;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionMetadata(BTreeMap<String, Box<RawValue>>);

/// Maximum size of the metadata as compact JSON, in bytes.
const MAX_BYTES: u64 = 16_384;

impl SessionMetadata {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    pub(crate) fn merge(&mut self, patch: &Self) {
        for (name, value) in &patch.0 {
            if value.get() == "null" {
                self.0.remove(name);
            } else {
                self.0.insert(name.clone(), value.clone());
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), ServiceError> {
        let json = serde_json::to_vec(self).expect("names are text");
        let attempted_bytes = json.len() as u64;
        if attempted_bytes > MAX_BYTES {
            let refusal = Refusal::MetadataTooLarge {
                limit_bytes: MAX_BYTES,
                attempted_bytes,
            };
            return Err(refusal.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(json: &str) -> SessionMetadata {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_patch_replaces_top_level_members_and_null_removes_them() {
        let mut merged = metadata(r#"{"a":1.0,"b":{"c":1},"d":2}"#);

        merged.merge(&metadata(
            r#"{"b":{"e":null},"d":null,"x":null,"n":9007199254740993}"#,
        ));

        assert_eq!(
            serde_json::to_string(&merged).unwrap(),
            r#"{"a":1.0,"b":{"e":null},"n":9007199254740993}"#
        );
    }

    #[test]
    fn metadata_over_16_kib_is_rejected() {
        let of_bytes = |bytes: usize| metadata(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8)));

        assert!(of_bytes(16_384).check().is_ok());
        assert!(matches!(
            of_bytes(16_385).check(),
            Err(ServiceError::Refused(Refusal::MetadataTooLarge {
                limit_bytes: 16_384,
                attempted_bytes: 16_385,
            }))
        ));
    }
}
