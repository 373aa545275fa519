use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// Minimum and maximum size of a secret in bytes (Standard Webhooks, section "Signature scheme").
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;

/// A symmetric Standard Webhooks secret: `whsec_` followed by 24 to 64 bytes in base64. `Debug` output omits the
/// secret; use [`Secret::expose`] to read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is `whsec_` and base64 of 24 to 64 bytes")]
pub struct SecretError;

impl Secret {
    /// Generates a secret of 32 bytes.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random::<[u8; 32]>().into())
    }

    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Returns the base64-encoded signature of the message `id` with the timestamp `timestamp_s`.
    pub(super) fn sign(&self, id: &str, timestamp_s: u64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes any key");
        mac.update(format!("{id}.{timestamp_s}.").as_bytes());
        mac.update(body);
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError)?;
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            return Err(SecretError);
        }
        Ok(Self(bytes.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_matches_the_specification() {
        // example from the reference libraries of Standard Webhooks
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();

        let signature = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );

        assert_eq!(signature, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn length_and_encoding_are_checked() {
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));

        for (bytes, is_legal) in [(23, false), (24, true), (64, true), (65, false)] {
            assert_eq!(of(bytes).parse::<Secret>().is_ok(), is_legal, "{bytes}");
        }
        let valid = of(32);
        for bad in ["", "whsec_", &valid[6..], &valid[..49], "whsec_?"] {
            assert_eq!(bad.parse::<Secret>(), Err(SecretError), "{bad}");
        }
    }

    #[test]
    fn a_random_secret_round_trips_and_is_hidden_in_debug_output() {
        let secret = Secret::random();

        assert_eq!(secret.expose().parse(), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "Secret(***)");
    }
}
