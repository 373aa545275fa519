//! Encryption of a connection.

use std::io;
use std::sync::{Arc, OnceLock};

use redis::{ErrorKind, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Encrypts a connection to a host, which has to show a certificate of that name.
pub(super) async fn connect(
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, RedisError> {
    let name = ServerName::try_from(host.to_owned());
    let unusable = "the host has no name for a certificate";
    let name = name.map_err(|_| (ErrorKind::InvalidClientConfig, unusable))?;
    let connector = TlsConnector::from(verifying()?);
    Ok(connector.connect(name, stream).await?)
}

/// Trusts the system's authorities, as they were when the first connection was made.
fn verifying() -> Result<Arc<ClientConfig>, RedisError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    if let Some(error) = found.errors.into_iter().next() {
        return Err(io::Error::other(error).into());
    }
    for certificate in found.certs {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}
