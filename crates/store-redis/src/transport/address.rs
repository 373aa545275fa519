//! Parses the address of Redis: one server, a master behind sentinels, or a cluster.

use std::fmt;

use redis::ConnectionAddr;

#[cfg(feature = "tls")]
use super::tls::CurrentCertificate;
use super::{Endpoint, Login, Parts, RedisUrlError, encrypted, url};
use crate::client_certificate::{ClientCertificate, ClientCertificateError};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// `redis://`, `rediss://`, `unix://`: one server.
    Server(Box<Endpoint>),
    /// `redis+sentinel://` or `rediss+sentinel://`: the current master, which the sentinels know by the name `master`.
    Sentinels {
        sentinels: Vec<Endpoint>,
        master: String,
        /// Connection settings for the master, without its host.
        server: Box<Endpoint>,
    },
    /// `redis+cluster://` or `rediss+cluster://`: all masters of a cluster, which the nodes in `seeds` report.
    Cluster {
        seeds: Vec<Host>,
        /// Connection settings for a node, without its host.
        node: Box<Endpoint>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(super) port: u16,
}

/// Encryption of TCP connections.
#[derive(Clone, Copy)]
enum Scheme {
    Plain,
    Encrypted,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, RedisUrlError> {
        let (scheme, rest) = url.split_once("://").ok_or(RedisUrlError::Scheme)?;
        if scheme.starts_with("rediss") && !cfg!(feature = "tls") {
            return Err(RedisUrlError::Encryption);
        }
        if rest.is_empty() {
            return Err(RedisUrlError::Scheme);
        }
        if rest.contains('#') {
            return Err(RedisUrlError::Parameter);
        }
        if rest.contains(char::is_control) {
            return Err(RedisUrlError::Host);
        }
        match scheme {
            "redis" => Self::server(Scheme::Plain, rest),
            "rediss" => Self::server(Scheme::Encrypted, rest),
            "redis+sentinel" => Self::sentinels(Scheme::Plain, rest),
            "rediss+sentinel" => Self::sentinels(Scheme::Encrypted, rest),
            "redis+cluster" => Self::cluster(Scheme::Plain, rest),
            "rediss+cluster" => Self::cluster(Scheme::Encrypted, rest),
            "unix" | "redis+unix" => Self::socket(rest),
            _ => Err(RedisUrlError::Scheme),
        }
    }

    fn server(scheme: Scheme, rest: &str) -> Result<Self, RedisUrlError> {
        let parts = Parts::read(rest)?;
        parts.parameters(&[])?;
        let [host] = &parts.hosts(REDIS_PORT)?[..] else {
            return Err(RedisUrlError::Host);
        };
        let database = url::database(parts.path)?;
        let endpoint = Endpoint::new(scheme.addr(host), parts.login, database)?;
        Ok(Self::Server(endpoint.into()))
    }

    fn socket(rest: &str) -> Result<Self, RedisUrlError> {
        let (path, parameters) = url::socket(rest, &["db", "user", "pass"])?;
        let login = Login::of(parameters.get("user"), parameters.get("pass"))?;
        let database = url::database(parameters.get("db").unwrap_or_default())?;
        let endpoint = Endpoint::new(ConnectionAddr::Unix(path.into()), login, database)?;
        Ok(Self::Server(endpoint.into()))
    }

    fn sentinels(scheme: Scheme, rest: &str) -> Result<Self, RedisUrlError> {
        let parts = Parts::read(rest)?;
        let (master, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
        let master = master_name(master)?;
        if database.contains('/') {
            return Err(RedisUrlError::Master);
        }
        let names = ["sentinel_username", "sentinel_password"];
        let parameters = parts.parameters(&names)?;
        let [user, password] = names.map(|name| parameters.get(name));
        let login = Login::of(user, password)?;
        let hosts = parts.hosts(SENTINEL_PORT)?;
        let sentinels = hosts
            .iter()
            .map(|host| Endpoint::new(scheme.addr(host), login.clone(), 0));
        let database = url::database(database)?;
        let server = Endpoint::new(scheme.addr(&hosts[0]), parts.login, database)?;
        Ok(Self::Sentinels {
            sentinels: sentinels.collect::<Result<_, _>>()?,
            master,
            server: server.into(),
        })
    }

    fn cluster(scheme: Scheme, rest: &str) -> Result<Self, RedisUrlError> {
        let parts = Parts::read(rest)?;
        if !matches!(parts.path, "" | "0") || parts.parameters(&[]).is_err() {
            return Err(RedisUrlError::Cluster);
        }
        let seeds = parts.hosts(REDIS_PORT)?;
        let node = Endpoint::new(scheme.addr(&seeds[0]), parts.login, 0)?;
        let node = node.into();
        Ok(Self::Cluster { seeds, node })
    }

    /// Uses the client certificate on all connections. Fails if any connection is not encrypted.
    #[cfg(feature = "tls")]
    pub(crate) fn with_client_certificate(
        mut self,
        files: &ClientCertificate,
    ) -> Result<Self, ClientCertificateError> {
        let endpoints: Vec<&mut Endpoint> = match &mut self {
            Self::Server(endpoint) | Self::Cluster { node: endpoint, .. } => vec![endpoint],
            Self::Sentinels {
                sentinels, server, ..
            } => sentinels.iter_mut().chain([&mut **server]).collect(),
        };
        if !endpoints.iter().all(|endpoint| endpoint.is_encrypted()) {
            return Err(ClientCertificateError::Unencrypted);
        }
        let certificate = CurrentCertificate::read(files)?.into();
        for endpoint in endpoints {
            endpoint.set_certificate(&certificate);
        }
        Ok(self)
    }

    /// Always fails, because connections are not encrypted without the feature `tls`.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn with_client_certificate(
        self,
        _files: &ClientCertificate,
    ) -> Result<Self, ClientCertificateError> {
        Err(ClientCertificateError::Unencrypted)
    }
}

impl Scheme {
    fn addr(self, host: &Host) -> ConnectionAddr {
        match self {
            Self::Plain => ConnectionAddr::Tcp(host.name.clone(), host.port),
            Self::Encrypted => encrypted(host),
        }
    }
}

impl Host {
    pub(crate) fn new(name: impl Into<String>, port: u16) -> Self {
        Self {
            name: name.into(),
            port,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

pub fn check_redis_url(url: &str) -> Result<(), RedisUrlError> {
    Address::parse(url).map(drop)
}

/// Decodes the name of a master, which appears in logs. Rejects unusual characters, because if a password contains an
/// unescaped `/`, the end of the password is parsed as part of this name.
fn master_name(text: &str) -> Result<String, RedisUrlError> {
    let is_name_character = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
    match text.is_empty() || !text.chars().all(is_name_character) {
        true => Err(RedisUrlError::Master),
        false => url::decode(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(endpoint: &Endpoint) -> (Option<&str>, Option<&str>) {
        let settings = endpoint.info().redis_settings();
        (settings.username(), settings.password())
    }

    fn by_sentinels(url: &str) -> (Vec<Endpoint>, String, Endpoint) {
        match Address::parse(url) {
            Ok(Address::Sentinels {
                sentinels,
                master,
                server,
            }) => (sentinels, master, *server),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sentinels_have_hosts_a_master_and_credentials_of_their_own() {
        let url = "redis+sentinel://app:p%40ss@one,[::1]:5000,three:26380/main/2\
                   ?sentinel_username=s&sentinel_password=w%2Frd";

        let (sentinels, master, server) = by_sentinels(url);

        let hosts: Vec<_> = sentinels
            .iter()
            .map(|s| s.info().addr().to_string())
            .collect();
        assert_eq!(hosts, ["one:26379", "::1:5000", "three:26380"]);
        assert_eq!(master, "main");
        assert_eq!(credentials(&sentinels[2]), (Some("s"), Some("w/rd")));
        assert_eq!(credentials(&server), (Some("app"), Some("p@ss")));
        assert_eq!(server.info().redis_settings().db(), 2);
    }

    #[test]
    fn every_part_of_a_url_is_applied() {
        let none = (None, None);
        for (url, addr, login, database) in [
            ("redis://host", "host:6379", none, 0),
            ("redis://host/", "host:6379", none, 0),
            (
                "redis://my_host.example:07000/015/",
                "my_host.example:7000",
                none,
                15,
            ),
            ("redis://[::1]", "::1:6379", none, 0),
            ("redis://[0:0::1]:1/0", "::1:1", none, 0),
            ("redis://:a:b@host", "host:6379", (None, Some("a:b")), 0),
            (
                "redis://u%3A:%40%2f%25+%C3%A9@host",
                "host:6379",
                (Some("u:"), Some("@/%+\u{e9}")),
                0,
            ),
            (
                "redis://u:a@b@host",
                "host:6379",
                (Some("u"), Some("a@b")),
                0,
            ),
            ("unix:///run/a%20b.sock", "/run/a b.sock", none, 0),
            (
                "redis+unix:///a?pass=b+%26c%3D&user=%23&db=3",
                "/a",
                (Some("#"), Some("b+&c=")),
                3,
            ),
        ] {
            let Ok(Address::Server(server)) = Address::parse(url) else {
                panic!("{url}: {:?}", Address::parse(url));
            };
            assert_eq!(server.info().addr().to_string(), addr, "{url}");
            assert_eq!(credentials(&server), login, "{url}");
            assert_eq!(server.info().redis_settings().db(), database, "{url}");
        }
    }

    #[test]
    fn sentinel_passwords_are_not_part_of_addresses() {
        let url = "redis+sentinel://one/ma%69n?sentinel_password=1/2?x+y&sentinel_username=h";

        let (sentinels, master, server) = by_sentinels(url);

        assert_eq!(sentinels[0].info().addr().to_string(), "one:26379");
        assert_eq!(credentials(&sentinels[0]), (Some("h"), Some("1/2?x+y")));
        assert_eq!(master, "main");
        assert_eq!(credentials(&server), (None, None));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn encryption_always_verifies_the_certificate() {
        for url in [
            "rediss://host",
            "rediss+cluster://host",
            "rediss+sentinel://host/main",
        ] {
            let endpoint = match Address::parse(url).unwrap() {
                Address::Server(endpoint) | Address::Cluster { node: endpoint, .. } => endpoint,
                Address::Sentinels { server, .. } => server,
            };
            let addr = endpoint.info().addr();
            assert!(
                matches!(
                    addr,
                    ConnectionAddr::TcpTls {
                        insecure: false,
                        ..
                    }
                ),
                "{url}"
            );
        }
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
        let other = node.at(&Host::new("ten", 1));
        assert!(
            matches!(other.info().addr(), ConnectionAddr::TcpTls { host, port: 1, .. } if host == "ten")
        );
        assert_eq!(credentials(&other), (None, Some("secret")));
    }

    #[test]
    fn an_invalid_url_is_rejected_with_the_violated_rule() {
        use RedisUrlError::{Cluster, Host, Master, Parameter, Scheme};
        for (url, error) in [
            ("localhost:6379", Scheme),
            ("redis://", Scheme),
            ("redis+sentry://host", Scheme),
            ("redis://host:port", Host),
            ("redis://host/database", Host),
            ("redis+cluster://", Scheme),
            ("valkey://host", Scheme),
            ("REDIS://host", Scheme),
            ("unix:/socket", Scheme),
            ("redis://one,two", Host),
            ("redis://host:", Host),
            ("redis://host:0", Host),
            ("redis://host:+1", Host),
            ("redis://host:1:2", Host),
            ("redis+sentinel://one,two:0/main", Host),
            ("redis+cluster://one:1,two:0", Host),
            ("redis://::1", Host),
            ("redis://[::1", Host),
            ("redis://[::1]6379", Host),
            ("redis://[host]", Host),
            ("redis://[fe80::1%25eth0]", Host),
            ("redis://0.0.0.0", Host),
            ("redis://[::]", Host),
            ("redis://ho st", Host),
            ("redis://h%6Fst", Host),
            ("redis://ho\tst", Host),
            ("redis://:a\nb@host", Host),
            ("redis://:a%b@host", Host),
            ("redis://:a%4@host", Host),
            ("redis://:a%FF@host", Host),
            ("redis://:a/b@host", Host),
            ("redis://u:1/2@host", Host),
            ("redis://host/-1", Host),
            ("redis://host/+1", Host),
            ("redis://host/9223372036854775808", Host),
            ("redis://host//0", Host),
            ("unix://host/socket", Host),
            ("unix://user:pass@/socket", Host),
            ("unix:///", Host),
            ("unix://socket", Host),
            ("unix:///socket?db=x", Host),
            ("unix:///socket?pass=%", Host),
            ("redis+sentinel://u:1/pass@host", Master),
            ("redis+sentinel://one/a b", Master),
            ("redis+sentinel://one//0", Master),
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
            ("redis://host?", Parameter),
            ("redis://:@host", Parameter),
            ("redis://@host", Parameter),
            ("redis://h:1?x@host", Parameter),
            ("rediss://host?insecure=true", Parameter),
            ("unix:///socket?", Parameter),
            ("unix:///socket?db=1&", Parameter),
            ("unix:///socket?db", Parameter),
            ("unix:///socket?db=", Parameter),
            ("unix:///socket?DB=1", Parameter),
            ("unix:///socket?protocol=3", Parameter),
            ("redis+sentinel://one/main?db=1", Parameter),
            ("redis+sentinel://one/main?sentinel_password", Parameter),
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
