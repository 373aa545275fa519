//! Signs and verifies with `ring`, which TLS already uses. `jsonwebtoken`'s back ends would add 25 crates or a C build.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::error::Unspecified;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, ED25519, EcdsaKeyPair, EcdsaSigningAlgorithm,
    EcdsaVerificationAlgorithm, Ed25519KeyPair, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature::{Error, Signer, Verifier};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(Keyed::new(*algorithm, key.family(), key)?)),
    verifier_factory: |algorithm, key| Ok(Box::new(Keyed::new(*algorithm, key.family(), key)?)),
    // needed only for thumbprints and for JWKs of private keys, which this crate never creates
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest: |_, _| Err(unsupported()),
    },
};

fn unsupported() -> jsonwebtoken::errors::Error {
    new_error(ErrorKind::UnsupportedAlgorithm)
}

/// Installs the `ring` provider for this process, unless the application has already installed a provider.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// Returns whether `ring` can verify with `key`. An RSA modulus must be 256 to 1,024 bytes long.
pub(super) fn supports(key: &DecodingKey) -> bool {
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, .. } => {
            (256..=1_024).contains(&without_zeros(n).len())
        }
        // the DER header and an exponent of up to 5 bytes add 12 to 20 bytes to the modulus
        DecodingKeyKind::SecretOrDer(der) if key.family() == AlgorithmFamily::Rsa => {
            (256 + 12..=1_024 + 20).contains(&der.len())
        }
        DecodingKeyKind::SecretOrDer(_) => true,
    }
}

/// Strips leading zeros, which `ring` rejects but some issuers write (RFC 7518, section 6.3.1.1).
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

enum Scheme {
    Hmac(hmac::Algorithm),
    Rsa(&'static RsaParameters, &'static dyn RsaEncoding),
    Ec(
        &'static EcdsaVerificationAlgorithm,
        &'static EcdsaSigningAlgorithm,
    ),
    Ed,
}

impl Scheme {
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::HS256 => Self::Hmac(hmac::HMAC_SHA256),
            Algorithm::HS384 => Self::Hmac(hmac::HMAC_SHA384),
            Algorithm::HS512 => Self::Hmac(hmac::HMAC_SHA512),
            Algorithm::RS256 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA256, &RSA_PKCS1_SHA256),
            Algorithm::RS384 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA384, &RSA_PKCS1_SHA384),
            Algorithm::RS512 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA512, &RSA_PKCS1_SHA512),
            Algorithm::PS256 => Self::Rsa(&RSA_PSS_2048_8192_SHA256, &RSA_PSS_SHA256),
            Algorithm::PS384 => Self::Rsa(&RSA_PSS_2048_8192_SHA384, &RSA_PSS_SHA384),
            Algorithm::PS512 => Self::Rsa(&RSA_PSS_2048_8192_SHA512, &RSA_PSS_SHA512),
            Algorithm::ES256 => {
                Self::Ec(&ECDSA_P256_SHA256_FIXED, &ECDSA_P256_SHA256_FIXED_SIGNING)
            }
            Algorithm::ES384 => {
                Self::Ec(&ECDSA_P384_SHA384_FIXED, &ECDSA_P384_SHA384_FIXED_SIGNING)
            }
            Algorithm::EdDSA => Self::Ed,
            _ => return None,
        })
    }
}

struct Keyed<K> {
    algorithm: Algorithm,
    scheme: Scheme,
    key: K,
}

impl<K: Clone> Keyed<K> {
    /// Rejects a key of a different family, because a public key could otherwise be used as a shared secret.
    fn new(algorithm: Algorithm, family: AlgorithmFamily, key: &K) -> Result<Self> {
        if algorithm.family() != family {
            return Err(new_error(ErrorKind::InvalidKeyFormat));
        }
        let scheme = Scheme::of(algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
        Ok(Self {
            algorithm,
            scheme,
            key: key.clone(),
        })
    }
}

impl Keyed<DecodingKey> {
    fn verify(&self, message: &[u8], signature: &[u8]) -> std::result::Result<(), Unspecified> {
        let verify = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature)
        };
        match (&self.scheme, self.key.kind()) {
            (Scheme::Hmac(hash), DecodingKeyKind::SecretOrDer(secret)) => {
                hmac::verify(&hmac::Key::new(*hash, secret), message, signature)
            }
            (Scheme::Rsa(parameters, _), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let (n, e) = (without_zeros(n), without_zeros(e));
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Rsa(parameters, _), DecodingKeyKind::SecretOrDer(der)) => {
                verify(*parameters, der)
            }
            (Scheme::Ec(curve, _), DecodingKeyKind::SecretOrDer(point)) => verify(*curve, point),
            (Scheme::Ed, DecodingKeyKind::SecretOrDer(point)) => verify(&ED25519, point),
            (_, DecodingKeyKind::RsaModulusExponent { .. }) => Err(Unspecified),
        }
    }
}

impl Verifier<Vec<u8>> for Keyed<DecodingKey> {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Keyed<DecodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Keyed<EncodingKey> {
    fn sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        let key = self.key.as_bytes();
        Ok(match &self.scheme {
            Scheme::Hmac(hash) => {
                let key = hmac::Key::new(*hash, key);
                hmac::sign(&key, message).as_ref().into()
            }
            Scheme::Rsa(_, encoding) => {
                let key = RsaKeyPair::from_der(key)?;
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(*encoding, &random, message, &mut signature)?;
                signature
            }
            Scheme::Ec(_, algorithm) => {
                let key = EcdsaKeyPair::from_pkcs8(algorithm, key, &random)?;
                key.sign(&random, message)?.as_ref().into()
            }
            Scheme::Ed => {
                let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key)?;
                key.sign(message).as_ref().into()
            }
        })
    }
}

impl Signer<Vec<u8>> for Keyed<EncodingKey> {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        self.sign(message).map_err(|_| Error::new())
    }
}

impl JwtSigner for Keyed<EncodingKey> {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
