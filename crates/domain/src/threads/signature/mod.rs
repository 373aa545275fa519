use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::named_secrets::{NamedSecretError, SECRET_BYTES, named_secrets};
use super::thread_id::ThreadId;

const BASE64_BYTES: usize = 44;
const MAC_BYTES: usize = 32;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// A named signing key. `Debug` hides the secret.
#[derive(Clone)]
pub struct SigningKey {
    name: Arc<str>,
    /// The prepared key schedule. Each signature clones it.
    mac: Hmac<Sha256>,
}

/// The signing keys of a deployment. One key signs, and all keys verify. A call of [`sign_with`](Self::sign_with)
/// changes the signing key for all clones.
#[derive(Debug, Clone)]
pub struct KeyRing {
    keys: Arc<[SigningKey]>,
    chosen: usize,
    /// Index of the key that signs. May differ from `chosen` until all replicas have the chosen key.
    signing: Arc<AtomicUsize>,
}

/// Invalid keys for a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// There are no keys.
    #[error("a key ring needs a signing key")]
    Empty,
    /// No key has the requested name.
    #[error("no signing key has that name")]
    UnknownName,
    /// The text is not a list of named secrets.
    #[error(transparent)]
    List(#[from] NamedSecretError),
    /// A secret is too short.
    #[error("the secret of key {number} is shorter than 32 bytes")]
    Short {
        /// The number of the key, from 1.
        number: usize,
    },
}

/// A fingerprint of a signing key, for comparison between replicas. The fingerprint cannot be used to sign.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyPrint {
    /// The name, for logs.
    pub name: Arc<str>,
    /// 16 hex digits, derived from the secret without revealing it.
    pub digest: String,
}

/// A thread id with a valid signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedId<'a> {
    /// The id.
    pub id: ThreadId,
    /// Name of the key that signed the id.
    pub key_name: &'a Arc<str>,
    /// Whether the ring would produce exactly this signature. If so, the id does not need to be signed again.
    pub is_current: bool,
}

impl SigningKey {
    /// Creates a key. The secret may have any length.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, secret: &[u8]) -> Self {
        Self {
            name: name.into(),
            mac: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"),
        }
    }

    /// Returns the name, for logs and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a fingerprint for other replicas. The fingerprint does not reveal the secret, and is not a valid
    /// signature of any id.
    #[must_use]
    pub fn print(&self) -> KeyPrint {
        let mac = self.mac(b"threadkeep print of a signing key");
        KeyPrint {
            name: Arc::clone(&self.name),
            digest: hex::encode(&mac[..8]),
        }
    }

    fn mac(&self, message: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = self.mac.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Display for KeyPrint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.digest, self.name)
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
    /// Creates a ring. The first key signs.
    pub fn new(keys: Vec<SigningKey>) -> Result<Self, KeyRingError> {
        if keys.is_empty() {
            return Err(KeyRingError::Empty);
        }
        Ok(Self {
            keys: keys.into(),
            chosen: 0,
            signing: Arc::default(),
        })
    }

    /// Parses a list of the form `name:secret,name:secret`. The first key signs. Each secret must be at least 32 bytes
    /// long. Errors do not contain secrets.
    pub fn parse(list: &str) -> Result<Self, KeyRingError> {
        let items = list
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        let keys = named_secrets(items)?;
        if let Some(index) = keys.iter().position(|key| key.secret.len() < SECRET_BYTES) {
            return Err(KeyRingError::Short { number: index + 1 });
        }
        let keys = keys.into_iter();
        Self::new(
            keys.map(|key| SigningKey::new(key.name, key.secret.as_bytes()))
                .collect(),
        )
    }

    /// Creates a ring with one random key, so the ring's signatures are valid only in this process.
    #[must_use]
    pub fn random() -> Self {
        Self {
            keys: [SigningKey::new("random", &rand::random::<[u8; 32]>())].into(),
            chosen: 0,
            signing: Arc::default(),
        }
    }

    /// Selects the key `name` for signing.
    pub fn choose(self, name: &str) -> Result<Self, KeyRingError> {
        let chosen = self.names().position(|key_name| key_name == name);
        let chosen = chosen.ok_or(KeyRingError::UnknownName)?;
        Ok(Self {
            chosen,
            signing: Arc::new(chosen.into()),
            ..self
        })
    }

    /// Returns the names of the keys, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(SigningKey::name)
    }

    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &[SigningKey] {
        &self.keys
    }

    /// Returns the index of the chosen key, which starts to sign once all replicas have it.
    #[must_use]
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Returns the index of the key that signs now.
    #[must_use]
    pub fn signing(&self) -> usize {
        // relaxed, because the keys themselves never change
        self.signing.load(Ordering::Relaxed)
    }

    /// Signs with the key at `index` from now on. An index out of range is ignored.
    pub fn sign_with(&self, index: usize) {
        if index < self.keys.len() {
            self.signing.store(index, Ordering::Relaxed);
        }
    }

    /// Returns the signature of an id as standard padded base64.
    #[must_use]
    pub fn sign(&self, id: &ThreadId) -> String {
        STANDARD.encode(self.signer().mac(id.as_bytes()))
    }

    /// Returns a keyed hash in the format of a thread id; see [`Self::digest`].
    #[must_use]
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> ThreadId {
        ThreadId::from_entropy(self.digest(purpose, parts))
    }

    /// Returns a keyed hash. The hash uses the first key, even if a different key signs, so that all replicas with the
    /// same first key compute the same hash.
    #[must_use]
    pub fn digest(&self, purpose: &str, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        truncate(self.keys[0].mac(&message(purpose, parts)))
    }

    /// Returns a keyed hash that proves that this service issued `parts`. The hash uses the signing key. `purpose` must
    /// not begin with `thrd_`, so that no tag is also the signature of a thread id.
    #[must_use]
    pub fn tag(&self, purpose: &str, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        truncate(self.signer().mac(&message(purpose, parts)))
    }

    /// Returns whether `tag` was computed with any key of the ring. The comparison takes constant time.
    #[must_use]
    pub fn verify_tag(&self, tag: &[u8; TAG_BYTES], purpose: &str, parts: &[&[u8]]) -> bool {
        let message = message(purpose, parts);
        let is_by = |key: &SigningKey| bool::from(truncate(key.mac(&message)).ct_eq(tag));
        self.keys.iter().any(is_by)
    }

    /// Returns whether an id and a signature have the format of a signed id. Does not verify the signature.
    #[must_use]
    pub fn is_well_formed(id: &str, signature: &str) -> bool {
        id.parse::<ThreadId>().is_ok() && decode(signature).is_some()
    }

    /// Verifies the signature of an id with any key of the ring. The signature is base64 or 64 hex digits. Compares in
    /// constant time. `None` does not reveal whether the id or the signature is wrong.
    #[must_use]
    pub fn verify(&self, id: &str, signature: &str) -> Option<SignedId<'_>> {
        let id: ThreadId = id.parse().ok()?;
        let (claimed, is_base64) = decode(signature)?;
        let signer = self
            .keys
            .iter()
            .position(|key| bool::from(key.mac(id.as_bytes()).ct_eq(&claimed)))?;
        Some(SignedId {
            id,
            key_name: &self.keys[signer].name,
            is_current: signer == self.signing() && is_base64,
        })
    }

    fn signer(&self) -> &SigningKey {
        &self.keys[self.signing()]
    }
}

/// Joins the arguments. Adds the length of each part, so that different parts never produce the same message.
fn message(purpose: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut message = purpose.as_bytes().to_vec();
    for part in parts {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}

fn truncate(mac: [u8; MAC_BYTES]) -> [u8; TAG_BYTES] {
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
mod tests;
