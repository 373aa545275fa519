use std::fmt;
use std::str::FromStr;

use uuid::Builder;

const PREFIX: &str = "fence_";
const FENCE_BYTES: usize = 16;

/// The random, unguessable fence of one attempt. A caller with the fence of the last attempt can settle the effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fence(pub [u8; FENCE_BYTES]);

/// A malformed fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fence is `fence_` and 32 hex digits")]
pub struct FenceError;

impl Fence {
    /// Generates a fence.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random())
    }
}

impl FromStr for Fence {
    type Err = FenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(FenceError)?;
        let mut fence = [0; FENCE_BYTES];
        hex::decode_to_slice(digits, &mut fence).map_err(|_| FenceError)?;
        Ok(Self(fence))
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

/// Keeps fences out of logs.
impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fence")
    }
}

/// The idempotency key of an effect: a random UUID, which is the same for all attempts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RunKey(pub [u8; 16]);

impl RunKey {
    /// Generates a key.
    #[must_use]
    pub fn random() -> Self {
        Self(
            *Builder::from_random_bytes(rand::random())
                .as_uuid()
                .as_bytes(),
        )
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).fmt(f)
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunKey")
    }
}

impl FromStr for RunKey {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(*uuid::Uuid::parse_str(text)?.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_round_trips_and_is_not_logged() {
        let fence = Fence::random();

        assert_eq!(fence.to_string().parse(), Ok(fence));
        assert_eq!(format!("{fence:?}"), "Fence");
        for bad in ["", "fence_", "fence_zz", "0123456789abcdef0123456789abcdef"] {
            assert_eq!(bad.parse::<Fence>(), Err(FenceError));
        }
    }

    #[test]
    fn a_key_is_a_random_uuid() {
        let key = RunKey::random();

        assert_eq!(key.to_string().parse::<RunKey>().unwrap(), key);
        assert_eq!(key.0[6] >> 4, 4);
    }
}
