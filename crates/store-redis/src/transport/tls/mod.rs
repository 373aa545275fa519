mod current;
mod pair;

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};

use redis::{ErrorKind, RedisError};
use rustls::client::WantsClientCert;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ConfigBuilder, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(super) use current::CurrentCertificate;
pub use pair::check_client_certificate;

pub(super) async fn connect(
    host: &str,
    stream: TcpStream,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, RedisError> {
    let name = ServerName::try_from(host.to_owned());
    let unusable = "the host has no name for a certificate";
    let name = name.map_err(|_| (ErrorKind::InvalidClientConfig, unusable))?;
    Ok(TlsConnector::from(config).connect(name, stream).await?)
}

pub(super) fn without_certificate() -> Result<Arc<ClientConfig>, RedisError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let config = verifying()?.with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}

/// Builds a configuration that trusts the system's certificate authorities. They are loaded for the first connection.
fn verifying() -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, RedisError> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = match ROOTS.get() {
        Some(roots) => roots,
        None => {
            let roots = load_roots()?;
            ROOTS.get_or_init(|| Arc::new(roots))
        }
    };
    Ok(ClientConfig::builder().with_root_certificates(Arc::clone(roots)))
}

fn load_roots() -> io::Result<RootCertStore> {
    let loaded = rustls_native_certs::load_native_certs();
    if let Some(error) = loaded.errors.into_iter().next() {
        return Err(io::Error::other(error));
    }
    let mut roots = RootCertStore::empty();
    for certificate in loaded.certs {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    Ok(roots)
}

#[derive(Debug, thiserror::Error)]
#[error("{0}; Redis may require a client certificate (tls-auth-clients), and none is configured")]
struct CertificateHint(RedisError);

/// Adds a hint to `error` if a missing client certificate may be its cause. The error itself may not mention the
/// certificate, because the server's alert can be lost when the server closes the connection.
pub(super) fn explain(error: RedisError) -> RedisError {
    let Some(kind) = io_error(&error)
        .filter(|error| ends_a_handshake(error))
        .map(io::Error::kind)
    else {
        return error;
    };
    io::Error::new(kind, CertificateHint(error)).into()
}

fn ends_a_handshake(error: &io::Error) -> bool {
    use rustls::Error::AlertReceived;

    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(AlertReceived(alert)) => matches!(
            *alert,
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure
        ),
        Some(_) => false,
        None => matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::UnexpectedEof
        ),
    }
}

/// Returns the I/O error that the `redis` crate has wrapped in `error`, behind an `Arc`.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let source: &Arc<dyn Error + Send + Sync> = error.source()?.downcast_ref()?;
    source.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_handshake_hints_at_a_missing_certificate() {
        let explained = |error: io::Error| explain(error.into()).to_string();
        let alert = |alert| io::Error::other(rustls::Error::AlertReceived(alert));

        for error in [
            alert(AlertDescription::CertificateRequired),
            alert(AlertDescription::HandshakeFailure),
            io::ErrorKind::ConnectionReset.into(),
            io::ErrorKind::BrokenPipe.into(),
        ] {
            let text = explained(error);
            assert!(text.contains("require a client certificate"), "{text}");
        }
        for error in [
            alert(AlertDescription::UnknownCA),
            io::ErrorKind::ConnectionRefused.into(),
            io::ErrorKind::TimedOut.into(),
        ] {
            let text = explained(error);
            assert!(!text.contains("client certificate"), "{text}");
        }
    }
}
