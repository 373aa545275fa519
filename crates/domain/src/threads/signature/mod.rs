//! Signed thread ids, and the keys that sign them.

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

/// A signing key by name. The secret does not show in its debug form.
#[derive(Clone)]
pub struct SigningKey {
    name: Arc<str>,
    /// The key schedule, prepared once; a signature begins with a copy of it.
    mac: Hmac<Sha256>,
}

/// The keys of a deployment: one signs, all verify.
///
/// Clones share which key signs, so [`sign_with`](Self::sign_with) counts for all of them.
#[derive(Debug, Clone)]
pub struct KeyRing {
    keys: Arc<[SigningKey]>,
    /// The place of the key that is to sign.
    chosen: usize,
    /// The place of the key that signs, which differs while other replicas lack the chosen one.
    signing: Arc<AtomicUsize>,
}

/// Keys that make no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// There are no keys.
    #[error("a key ring needs a signing key")]
    Empty,
    /// None has the name of the key that is to sign.
    #[error("no signing key has that name")]
    UnknownName,
    /// The text lists no named secrets.
    #[error(transparent)]
    List(#[from] NamedSecretError),
    /// A secret is too short to sign.
    #[error("the secret of key {number} is shorter than 32 bytes")]
    Short {
        /// Which key, from 1 on.
        number: usize,
    },
}

/// A signing key as replicas tell each other of it: enough to compare keys, and nothing to sign with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyPrint {
    /// The name, for logs.
    pub name: Arc<str>,
    /// 16 hex digits that the secret determines and that do not reveal it.
    pub digest: String,
}

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

    /// The part of the key that other replicas may know: a truncated HMAC of a constant, which reveals as little about
    /// the secret as a signed id does, and is not the signature of any id.
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
    /// A ring of these keys; the first one signs.
    ///
    /// # Errors
    /// If there are no keys.
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

    /// The keys of a list, `name:secret,name:secret`, of which the first signs. A secret has at least 32
    /// bytes and no comma.
    ///
    /// # Errors
    /// [`KeyRingError`], which never shows a secret.
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

    /// A ring of one random key, whose signatures are worthless after this process.
    #[must_use]
    pub fn random() -> Self {
        Self {
            keys: [SigningKey::new("random", &rand::random::<[u8; 32]>())].into(),
            chosen: 0,
            signing: Arc::default(),
        }
    }

    /// The same keys, of which the one of that name signs.
    ///
    /// # Errors
    /// When none has the name.
    pub fn choose(self, name: &str) -> Result<Self, KeyRingError> {
        let chosen = self.names().position(|known| known == name);
        let chosen = chosen.ok_or(KeyRingError::UnknownName)?;
        Ok(Self {
            chosen,
            signing: Arc::new(chosen.into()),
            ..self
        })
    }

    /// The names of the keys, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(SigningKey::name)
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &[SigningKey] {
        &self.keys
    }

    /// The place of the key that is to sign once all replicas have it.
    #[must_use]
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// The place of the key that signs now.
    #[must_use]
    pub fn signing(&self) -> usize {
        // the keys never change, so there is nothing to be ordered with
        self.signing.load(Ordering::Relaxed)
    }

    /// Signs with the key at that place from now on; a place without a key changes nothing.
    pub fn sign_with(&self, index: usize) {
        if index < self.keys.len() {
            self.signing.store(index, Ordering::Relaxed);
        }
    }

    /// The signature over the id's bytes, as standard padded base64.
    #[must_use]
    pub fn sign(&self, id: &ThreadId) -> String {
        STANDARD.encode(self.signer().mac(id.as_bytes()))
    }

    /// A keyed hash of a text in the form of a thread id; see [`Self::digest`].
    #[must_use]
    pub fn derive(&self, purpose: &str, parts: &[&[u8]]) -> ThreadId {
        ThreadId::from_entropy(self.digest(purpose, parts))
    }

    /// A keyed hash of a text by the first key, whichever signs: the same text has the same hash on
    /// every replica, for as long as the first key stays.
    #[must_use]
    pub fn digest(&self, purpose: &str, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        cut(self.keys[0].mac(&message(purpose, parts)))
    }

    /// A keyed hash of a text by the key that signs, which shows that the text is of this service.
    /// No purpose begins like a thread id, so that none is the signature of one.
    #[must_use]
    pub fn tag(&self, purpose: &str, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        cut(self.signer().mac(&message(purpose, parts)))
    }

    /// Whether one of the keys has made that tag. It takes the same time for all tags.
    #[must_use]
    pub fn has_made(&self, tag: &[u8; TAG_BYTES], purpose: &str, parts: &[&[u8]]) -> bool {
        let message = message(purpose, parts);
        let is_by = |key: &SigningKey| bool::from(cut(key.mac(&message)).ct_eq(tag));
        self.keys.iter().any(is_by)
    }

    /// Whether an id and a signature have the form of a signed id, whichever key signed it.
    #[must_use]
    pub fn is_well_formed(id: &str, signature: &str) -> bool {
        id.parse::<ThreadId>().is_ok() && decode(signature).is_some()
    }

    /// Verifies an id and its signature, base64 or 64 hex digits, against every key.
    ///
    /// The result does not reveal which part was wrong, and comparison takes the same time for all signatures.
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
mod tests;
