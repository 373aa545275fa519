/// The reason why a Redis URL is rejected. Messages never quote any part of the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be {}", self.rule())]
pub enum RedisUrlError {
    Scheme,
    Host,
    /// The name of the master is missing, or is followed by something other than a database number.
    Master,
    /// A cluster has no numbered databases.
    Cluster,
    /// The URL has a part without effect: an unknown parameter, a part after `#`, or a user without a password.
    Parameter,
    /// The URL requires TLS, which needs the feature `tls` of this crate.
    Encryption,
}

impl RedisUrlError {
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
