//! Settings that work but should be changed.

/// Settings that the server accepts, perhaps on a loopback address only, but that should be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// No signing key is configured.
    #[error("no signing key is set: this run signs thread ids with a random one")]
    RandomSigningKey,
    /// A signing key is short.
    #[error("signing key `{0}` is shorter than 32 bytes: only loopback addresses accept it")]
    ShortSigningKey(String),
    /// An API key is short.
    #[error("API key `{0}` is shorter than 32 bytes")]
    ShortApiKey(String),
    /// Models are configured, but no API key.
    #[error("`models` is set, but no API key: all requests for models require one")]
    ModelsWithoutApiKey,
    /// A setting is given by its earlier name.
    #[error("`{earlier}` is now called `{present}`; the next release rejects the earlier name")]
    Renamed {
        /// The name that is given.
        earlier: &'static str,
        /// The name to use.
        present: &'static str,
    },
}
