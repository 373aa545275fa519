//! Where Redis is: one server, a master that sentinels know, or a cluster.

use std::fmt;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use socket2::TcpKeepalive;

use super::parameters::{self, Parameters};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The URL of a deployment.
#[derive(Clone)]
pub(crate) enum Address {
    /// `redis://`, `rediss://`, `unix://`: one server.
    Server(Box<ConnectionInfo>),
    /// `redis+sentinel://`, `rediss+sentinel://`: the master of that name, whichever it is.
    Sentinels {
        /// How to reach each sentinel.
        sentinels: Vec<ConnectionInfo>,
        /// The sentinels' name of the master.
        master: String,
        /// The connection to the master, without its host.
        server: Box<ConnectionInfo>,
    },
    /// `redis+cluster://`, `rediss+cluster://`: all masters that these nodes know.
    Cluster {
        /// Nodes to begin with.
        seeds: Vec<Host>,
        /// The connection to a node, without its host.
        node: Box<ConnectionInfo>,
    },
}

/// A host and its port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(super) port: u16,
}

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
    /// A parameter, a part behind `#`, or a user without a password, which would have no effect.
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
                "an address of the form redis://user:password@host:port, with what is special in a \
                 password written as %40 and the like"
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
                 and sentinel_password of redis+sentinel://, each given once; a user needs a password"
            }
            Self::Encryption => {
                "an address without TLS, as threadkeep was built without its feature tls"
            }
        }
    }
}

/// The parts of a URL with several hosts.
struct Parts<'a> {
    scheme: &'static str,
    credentials: &'a str,
    hosts: Vec<&'a str>,
    path: &'a str,
    query: &'a str,
}

impl Address {
    /// Reads a URL.
    pub(crate) fn parse(url: &str) -> Result<Self, RedisUrlError> {
        let (scheme, rest) = url.split_once("://").ok_or(RedisUrlError::Scheme)?;
        if scheme.starts_with("rediss") && !cfg!(feature = "tls") {
            return Err(RedisUrlError::Encryption);
        }
        if rest.contains('#') {
            return Err(RedisUrlError::Parameter);
        }
        let parts = |scheme| Parts::of(scheme, rest);
        match scheme {
            "redis+sentinel" => Self::sentinels(&parts("redis")?),
            "rediss+sentinel" => Self::sentinels(&parts("rediss")?),
            "redis+cluster" => Self::cluster(&parts("redis")?),
            "rediss+cluster" => Self::cluster(&parts("rediss")?),
            "redis" | "rediss" | "unix" | "redis+unix" if !rest.is_empty() => {
                parameters::check_server(scheme, rest)?;
                connection(url).map(|info| Self::Server(Box::new(info)))
            }
            _ => Err(RedisUrlError::Scheme),
        }
    }

    fn sentinels(parts: &Parts<'_>) -> Result<Self, RedisUrlError> {
        let (master, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
        if master.is_empty() || database.contains('/') {
            return Err(RedisUrlError::Master);
        }
        let names = ["sentinel_username", "sentinel_password"];
        let parameters = Parameters::read(parts.query, &names)?;
        let [username, password] = names.map(|name| parameters.get(name));
        parameters::check_user(username, password)?;
        let credentials = password.map_or_else(String::new, |password| {
            format!("{}:{password}@", username.unwrap_or_default())
        });
        let sentinels = parts.hosts.iter().map(|host| {
            let info = parts.connection(&credentials, host, "")?;
            Ok(with_port(info, host, SENTINEL_PORT))
        });
        Ok(Self::Sentinels {
            sentinels: sentinels.collect::<Result<_, _>>()?,
            master: master.to_owned(),
            server: Box::new(parts.connection(parts.credentials, parts.hosts[0], database)?),
        })
    }

    fn cluster(parts: &Parts<'_>) -> Result<Self, RedisUrlError> {
        if !matches!(parts.path, "" | "0") || !parts.query.is_empty() {
            return Err(RedisUrlError::Cluster);
        }
        let infos = parts
            .hosts
            .iter()
            .map(|host| parts.connection(parts.credentials, host, ""));
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        Ok(Self::Cluster {
            seeds: infos.iter().filter_map(Host::of).collect(),
            node: Box::new(infos[0].clone()),
        })
    }
}

impl<'a> Parts<'a> {
    fn of(scheme: &'static str, rest: &'a str) -> Result<Self, RedisUrlError> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = match authority.rfind('@') {
            Some(at) => authority.split_at(at + 1),
            None => ("", authority),
        };
        parameters::check_credentials(credentials.trim_end_matches('@'))?;
        Ok(Self {
            scheme,
            credentials,
            hosts: hosts.split(',').collect(),
            path: path.strip_suffix('/').unwrap_or(path),
            query,
        })
    }

    /// How to reach one of the hosts: by the URL that it would have alone.
    fn connection(
        &self,
        credentials: &str,
        host: &str,
        database: &str,
    ) -> Result<ConnectionInfo, RedisUrlError> {
        if host.is_empty() {
            return Err(RedisUrlError::Host);
        }
        let scheme = self.scheme;
        connection(&format!("{scheme}://{credentials}{host}/{database}"))
    }
}

impl Host {
    pub(crate) fn new(name: impl Into<String>, port: u16) -> Self {
        Self {
            name: name.into(),
            port,
        }
    }

    fn of(info: &ConnectionInfo) -> Option<Self> {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self::new(host, *port))
            }
            _ => None,
        }
    }

    /// How to reach this host, with all else as it is there.
    pub(super) fn reached_like(&self, info: &ConnectionInfo) -> ConnectionInfo {
        let addr = match info.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host: self.name.clone(),
                port: self.port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(self.name.clone(), self.port),
        };
        info.clone().set_addr(addr)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Whether a URL is one of a deployment of Redis.
///
/// # Errors
/// [`RedisUrlError`].
pub fn check_redis_url(url: &str) -> Result<(), RedisUrlError> {
    Address::parse(url).map(drop)
}

/// Passwords are in there.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

/// A port of its own where the text names none.
fn with_port(info: ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let names_a_port = host
        .rsplit(']')
        .next()
        .is_some_and(|rest| rest.contains(':'));
    match Host::of(&info) {
        Some(host) if !names_a_port && host.port == REDIS_PORT => {
            Host::new(host.name, port).reached_like(&info)
        }
        _ => info,
    }
}

fn connection(url: &str) -> Result<ConnectionInfo, RedisUrlError> {
    let info = url.into_connection_info();
    let info = info.map_err(|_| RedisUrlError::Host)?;
    let settings = TcpSettings::default().set_nodelay(true);
    Ok(info.set_tcp_settings(settings.set_keepalive(keepalive())))
}

/// Asks an idle connection for a sign of life before a NAT or a load balancer forgets it, which happens without notice: after 4
/// minutes in Azure, after 350 s in AWS. A connection without an answer is closed 90 s after its last use.
fn keepalive() -> TcpKeepalive {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));
    let keepalive = keepalive.with_interval(Duration::from_secs(10));
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(3);
    keepalive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(info: &ConnectionInfo) -> (Option<&str>, Option<&str>) {
        let settings = info.redis_settings();
        (settings.username(), settings.password())
    }

    #[test]
    fn sentinels_have_hosts_a_master_and_credentials_of_their_own() {
        let url = "redis+sentinel://app:p%40ss@one,[::1]:5000,three:26380/main/2\
                   ?sentinel_username=s&sentinel_password=w%2Frd";

        let Ok(Address::Sentinels {
            sentinels,
            master,
            server,
        }) = Address::parse(url)
        else {
            panic!("{:?}", Address::parse(url));
        };

        let hosts: Vec<_> = sentinels.iter().map(|s| Host::of(s).unwrap()).collect();
        let wanted = [("one", 26379), ("::1", 5000), ("three", 26380)];
        assert_eq!(hosts, wanted.map(|(name, port)| Host::new(name, port)));
        assert_eq!(master, "main");
        assert_eq!(credentials(&sentinels[2]), (Some("s"), Some("w/rd")));
        assert_eq!(credentials(&server), (Some("app"), Some("p@ss")));
        assert_eq!(server.redis_settings().db(), 2);
    }

    #[cfg(feature = "tls")]
    #[test]
    fn the_nodes_of_a_cluster_share_credentials_and_encryption() {
        let Ok(Address::Cluster { seeds, node }) =
            Address::parse("rediss+cluster://:secret@one:7000,two/0")
        else {
            panic!("it is a cluster");
        };

        assert_eq!(seeds, [Host::new("one", 7000), Host::new("two", 6379)]);
        let other = Host::new("ten", 1).reached_like(&node);
        assert!(
            matches!(other.addr(), ConnectionAddr::TcpTls { host, port: 1, .. } if host == "ten")
        );
        assert_eq!(credentials(&other), (None, Some("secret")));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told() {
        use RedisUrlError::{Cluster, Host, Master, Parameter, Scheme};
        for (url, error) in [
            ("localhost:6379", Scheme),
            ("redis://", Scheme),
            ("redis+sentry://host", Scheme),
            ("redis://host:port", Host),
            ("redis://host/database", Host),
            ("redis+cluster://", Host),
            ("redis+cluster://one,,two", Host),
            ("redis+cluster://one:70000", Host),
            ("redis+cluster://one/1", Cluster),
            ("redis+cluster://one?replicas=true", Cluster),
            ("redis+sentinel://one", Master),
            ("redis+sentinel://one/main/0/1", Master),
            ("redis+sentinel://one/main?password=x", Parameter),
            ("redis+sentinel://one/main?sentinel_username=s", Parameter),
            ("redis+sentinel://one/main?sentinel_password=", Parameter),
            (
                "redis+sentinel://one/main?sentinel_password=a&sentinel_password=b",
                Parameter,
            ),
            ("redis+sentinel://user@one/main", Parameter),
            ("redis+cluster://user@one", Parameter),
            ("redis+cluster://one#insecure", Parameter),
            ("redis://host?db=1", Parameter),
            ("redis://host?protocol=resp3", Parameter),
            ("redis://host/0?timeout=5", Parameter),
            ("redis://host#insecure", Parameter),
            ("redis://user@host", Parameter),
            ("redis://user:@host", Parameter),
            ("redis://host/0/1", Host),
            ("unix:///socket?database=1", Parameter),
            ("unix:///socket?db=1&db=2", Parameter),
            ("unix:///socket?user=a", Parameter),
            ("unix:///socket#a", Parameter),
            ("redis+sentinel://one/main/x", Host),
        ] {
            assert_eq!(Address::parse(url).unwrap_err(), error, "{url}");
        }
    }
}
