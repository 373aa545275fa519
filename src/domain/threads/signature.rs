//! Signed thread ids, and the keys that sign them.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::thread_id::ThreadId;

const BASE64_BYTES: usize = 44;
const MAC_BYTES: usize = 32;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// A signing key by name. The secret does not show in its debug form.
#[derive(Clone)]
pub struct SigningKey {
    name: Arc<str>,
    /// The key schedule, prepared once; a signature begins with a copy of it.
    mac: Hmac<Sha256>,
}

/// The keys of a deployment: the first signs, all verify.
#[derive(Debug, Clone)]
pub struct KeyRing(Vec<SigningKey>);

/// A ring without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key ring needs a signing key")]
pub struct KeyRingError;

/// A thread id whose signature holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedId<'a> {
    /// The id.
    pub id: ThreadId,
    /// Name of the key that signed it.
    pub key_name: &'a Arc<str>,
    /// Whether it is just what the ring would emit, so that it need not be signed again.
    pub is_current: bool,
}

impl SigningKey {
    /// A key of that name; its secret may have any length.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, secret: &[u8]) -> Self {
        Self {
            name: name.into(),
            mac: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"),
        }
    }

    /// The name, for logs and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn mac(&self, message: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = self.mac.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl KeyRing {
    /// A ring of these keys.
    ///
    /// # Errors
    /// When there is none.
    pub fn new(keys: Vec<SigningKey>) -> Result<Self, KeyRingError> {
        if keys.is_empty() {
            return Err(KeyRingError);
        }
        Ok(Self(keys))
    }

    /// The names of the keys, the signing one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(SigningKey::name)
    }

    /// The signature of the first key over the id's bytes, as standard padded base64.
    #[must_use]
    pub fn sign(&self, id: &ThreadId) -> String {
        STANDARD.encode(self.0[0].mac(id.as_bytes()))
    }

    /// A keyed hash of a text in the form of a thread id: the same text has the same id for as
    /// long as the first key stays.
    #[must_use]
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> ThreadId {
        ThreadId::from_entropy(self.tag(purpose, parts))
    }

    /// A keyed hash of a text by the first key, which shows that the text is of this service. No
    /// purpose begins like a thread id, so that none is the signature of one.
    #[must_use]
    pub fn tag(&self, purpose: &str, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        cut(self.0[0].mac(&message(purpose, parts)))
    }

    /// Whether one of the keys has made that tag. It takes the same time for all tags.
    #[must_use]
    pub fn has_made(&self, tag: &[u8; TAG_BYTES], purpose: &str, parts: &[&[u8]]) -> bool {
        let message = message(purpose, parts);
        let is_by = |key: &SigningKey| bool::from(cut(key.mac(&message)).ct_eq(tag));
        self.0.iter().any(is_by)
    }

    /// Verifies an id and its signature, base64 or 64 hex digits, against every key.
    ///
    /// Which part was wrong is not told, and comparison takes the same time for all signatures.
    #[must_use]
    pub fn verify(&self, id: &str, signature: &str) -> Option<SignedId<'_>> {
        let id: ThreadId = id.parse().ok()?;
        let (claimed, is_base64) = decode(signature)?;
        let signer = self
            .0
            .iter()
            .position(|key| bool::from(key.mac(id.as_bytes()).ct_eq(&claimed)))?;
        Some(SignedId {
            id,
            key_name: &self.0[signer].name,
            is_current: signer == 0 && is_base64,
        })
    }
}

/// Parts with their lengths, so that no two lists of parts are the same text.
fn message(purpose: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut message = purpose.as_bytes().to_vec();
    for part in parts {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}

fn cut(mac: [u8; MAC_BYTES]) -> [u8; TAG_BYTES] {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&mac[..TAG_BYTES]);
    tag
}

fn decode(signature: &str) -> Option<([u8; MAC_BYTES], bool)> {
    let mut mac = [0; MAC_BYTES];
    if signature.len() == BASE64_BYTES {
        let bytes = STANDARD.decode(signature).ok()?;
        mac = bytes.try_into().ok()?;
        return Some((mac, true));
    }
    hex::decode_to_slice(signature, &mut mac).ok()?;
    Some((mac, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(names: &[&str]) -> KeyRing {
        KeyRing::new(
            names
                .iter()
                .map(|name| SigningKey::new(*name, name.as_bytes()))
                .collect(),
        )
        .unwrap()
    }

    const ID: &str = "thrd_0123456789abcdef0123456789abcdef";

    /// Python: `base64.b64encode(hmac.new(b"agentuity", ID, hashlib.sha256).digest())`.
    #[test]
    fn the_signature_is_hmac_sha256_of_the_id_as_padded_base64() {
        let ring = ring(&["agentuity"]);

        assert_eq!(
            ring.sign(&ID.parse().unwrap()),
            "d3ll8ojzxFLu0GwdiRQ37M8WeVczY+ZkezSgcBwGx3o="
        );
    }

    #[test]
    fn every_key_verifies_and_only_the_first_is_current() {
        let old = ring(&["old"]);
        let both = ring(&["new", "old"]);
        let id: ThreadId = ID.parse().unwrap();

        let by_old = both.verify(ID, &old.sign(&id)).unwrap();
        let by_new = both.verify(ID, &both.sign(&id)).unwrap();

        assert_eq!((&**by_old.key_name, by_old.is_current), ("old", false));
        assert_eq!((&**by_new.key_name, by_new.is_current), ("new", true));
        assert_eq!(old.verify(ID, &both.sign(&id)), None);
    }

    #[test]
    fn hex_of_any_case_is_accepted_but_is_not_what_we_emit() {
        let ring = ring(&["key"]);
        let id: ThreadId = ID.parse().unwrap();
        let mac = STANDARD.decode(ring.sign(&id)).unwrap();

        for text in [hex::encode(&mac), hex::encode_upper(&mac)] {
            assert!(!ring.verify(ID, &text).unwrap().is_current);
        }
    }

    #[test]
    fn what_is_cut_or_changed_does_not_verify() {
        let ring = ring(&["key"]);
        let signature = ring.sign(&ID.parse().unwrap());
        let other = ID.replace("0123", "0124");

        assert_eq!(ring.verify(&other, &signature), None);
        for bad in [
            "",
            "=",
            &signature[..43],
            &signature.replace('=', ""),
            &"0".repeat(64),
        ] {
            assert_eq!(ring.verify(ID, bad), None, "{bad}");
        }
    }

    #[test]
    fn a_tag_holds_for_its_purpose_and_parts_and_under_every_key() {
        let old = ring(&["old"]);
        let both = ring(&["new", "old"]);
        let tag = old.tag("cursor", &[b"a", b"b"]);

        assert!(both.has_made(&tag, "cursor", &[b"a", b"b"]));
        assert!(!both.has_made(&both.tag("cursor", &[b"ab", b""]), "cursor", &[b"a", b"b"]));
        assert!(!both.has_made(&tag, "place", &[b"a", b"b"]));
        assert!(!ring(&["new"]).has_made(&tag, "cursor", &[b"a", b"b"]));
    }
}
