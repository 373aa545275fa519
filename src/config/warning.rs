/// A setting that the server accepts but that should be changed. Some of these settings are accepted only if the server
/// listens on a loopback address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("no signing key is set: this run signs thread ids with a random one")]
    RandomSigningKey,
    #[error("signing key `{0}` is shorter than 32 bytes: only loopback addresses accept it")]
    ShortSigningKey(String),
    #[error("API key `{0}` is shorter than 32 bytes")]
    ShortApiKey(String),
    #[error("`models` is set, but no API key: all requests for models require one")]
    ModelsWithoutApiKey,
    #[error("`{earlier}` is now called `{present}`; the next release rejects the earlier name")]
    Renamed {
        earlier: &'static str,
        present: &'static str,
    },
}
