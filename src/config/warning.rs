//! Settings that work and should not stay.

/// Settings that may be used on a loopback address, but should not be elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// No signing key is configured.
    #[error("no signing key is configured: thread ids are signed with a random one for this run")]
    RandomSigningKey,
    /// A signing key is short.
    #[error("a signing key is shorter than 32 bytes: no address but a loopback one takes it")]
    ShortSigningKey,
    /// An api key is short.
    #[error("an api key is shorter than 32 bytes, and sees all threads")]
    ShortApiKey,
}
