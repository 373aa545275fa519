//! Errors of URLs.

/// The fault of a URL. No text contains any part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be {}", self.rule())]
pub enum RedisUrlError {
    /// No known scheme, or nothing after it.
    Scheme,
    /// Hosts, port, user, password or database are written wrongly.
    Host,
    /// The name of the master is missing, or there is more than it and a database.
    Master,
    /// A cluster has no databases.
    Cluster,
    /// A parameter, a part behind `#`, or a login without a password, which would have no effect.
    Parameter,
    /// It asks for TLS, which this build has not: see the crate's feature `tls`.
    Encryption,
}

impl RedisUrlError {
    /// The rule that the URL breaks.
    #[must_use]
    pub fn rule(self) -> &'static str {
        match self {
            Self::Scheme => {
                "an address such as redis://localhost:6379, or one that begins with rediss://, \
                 unix://, redis+sentinel:// or redis+cluster://"
            }
            Self::Host => {
                "an address of the form redis://user:password@host:port/0 or unix:///path, with special characters written \
                 as %40 and the like, a port from 1 to 65535 and an IPv6 address in brackets"
            }
            Self::Master => {
                "redis+sentinel://user:password@host:26379,host:26379/MASTER/0, with the name that \
                 the sentinels have for the master"
            }
            Self::Cluster => {
                "redis+cluster://user:password@host:6379,host:6379: a cluster has one database and \
                 no parameters"
            }
            Self::Parameter => {
                "an address without parameters and without `#`, except for db, user and pass of unix://, and sentinel_username \
                 and sentinel_password of redis+sentinel://, each given once and not empty; a login needs a password"
            }
            Self::Encryption => {
                "an address without TLS, as threadkeep was built without its feature tls"
            }
        }
    }
}
