use std::fmt;
#[cfg(feature = "tls")]
use std::sync::Arc;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError};
use socket2::TcpKeepalive;

#[cfg(feature = "tls")]
use super::tls::{self, CurrentCertificate};
use super::{Host, Login, RedisUrlError};

#[derive(Clone)]
pub(crate) struct Endpoint {
    info: ConnectionInfo,
    #[cfg(feature = "tls")]
    certificate: Option<Arc<CurrentCertificate>>,
}

impl Endpoint {
    pub(super) fn new(
        addr: ConnectionAddr,
        login: Login,
        database: i64,
    ) -> Result<Self, RedisUrlError> {
        let mut settings = RedisConnectionInfo::default().set_db(database);
        if let Some(user) = login.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = login.password {
            settings = settings.set_password(password);
        }
        let info = addr.into_connection_info();
        let info = info.map_err(|_| RedisUrlError::Host)?;
        let tcp = TcpSettings::default().set_nodelay(true);
        Ok(Self {
            info: info
                .set_redis_settings(settings)
                .set_tcp_settings(tcp.set_keepalive(keepalive())),
            #[cfg(feature = "tls")]
            certificate: None,
        })
    }

    pub(super) fn at(&self, host: &Host) -> Self {
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls { .. } => encrypted(host),
            _ => ConnectionAddr::Tcp(host.name.clone(), host.port),
        };
        Self {
            info: self.info.clone().set_addr(addr),
            ..self.clone()
        }
    }

    pub(super) fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_async, reason = "the certificate is read from a file")
    )]
    pub(super) async fn for_library(&self) -> Result<ConnectionInfo, RedisError> {
        let info = self.info.clone();
        #[cfg(feature = "tls")]
        if let Some(certificate) = &self.certificate {
            return certificate.get().await.for_library(info);
        }
        Ok(info)
    }
}

#[cfg(feature = "tls")]
impl Endpoint {
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.info.addr(), ConnectionAddr::TcpTls { .. })
    }

    pub(super) fn set_certificate(&mut self, certificate: &Arc<CurrentCertificate>) {
        self.certificate = Some(Arc::clone(certificate));
    }

    pub(super) async fn encryption(&self) -> Result<Arc<rustls::ClientConfig>, RedisError> {
        match &self.certificate {
            Some(certificate) => certificate.get().await.encryption(),
            None => tls::without_certificate(),
        }
    }

    /// Adds a hint to a connection error if the server may require a client certificate.
    pub(super) fn explain(&self, error: RedisError) -> RedisError {
        match self.is_encrypted() && self.certificate.is_none() {
            true => tls::explain(error),
            false => error,
        }
    }
}

#[cfg(not(feature = "tls"))]
impl Endpoint {
    pub(super) fn explain(&self, error: RedisError) -> RedisError {
        error
    }
}

pub(super) fn encrypted(host: &Host) -> ConnectionAddr {
    ConnectionAddr::TcpTls {
        host: host.name.clone(),
        port: host.port,
        insecure: false,
        tls_params: None,
    }
}

/// Probes idle connections before a NAT or a load balancer silently drops them (after 4 minutes in Azure, and 350 s in
/// AWS). If the peer does not respond, the connection is closed 90 s after its last use.
fn keepalive() -> TcpKeepalive {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));
    let keepalive = keepalive.with_interval(Duration::from_secs(10));
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(3);
    keepalive
}

/// Omits the password.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
