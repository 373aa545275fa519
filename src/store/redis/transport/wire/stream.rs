//! The connection of the system, encrypted or not.

use std::io;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::select_ok;
use redis::{ConnectionAddr, ErrorKind, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::driver::Driver;
use super::queue::Queue;

/// Opens a connection and has a task of this runtime drive it.
pub(super) async fn open(addr: &ConnectionAddr) -> Result<Arc<Queue>, RedisError> {
    match addr {
        ConnectionAddr::Tcp(host, port) => Ok(drive(tcp(host, *port).await?)),
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            ..
        } => {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| unusable("the host has no name for a certificate"))?;
            let connector = TlsConnector::from(verifying()?);
            let stream = connector.connect(name, tcp(host, *port).await?).await?;
            Ok(drive(stream))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(drive(UnixStream::connect(path).await?)),
        _ => Err(unusable(
            "what is behind # in the address, such as insecure, is not supported",
        )),
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    // all addresses at once: one that says nothing takes no time of the others
    let addresses: Vec<_> = lookup_host((host, port)).await?.collect();
    let attempts = addresses
        .into_iter()
        .map(|at| TcpStream::connect(at).boxed());
    let attempts: Vec<_> = attempts.collect();
    if attempts.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the host has no address",
        ));
    }
    let (stream, _) = select_ok(attempts).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn drive<S>(stream: S) -> Arc<Queue>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let queue = Arc::<Queue>::default();
    tokio::spawn(Driver::new(stream, Arc::clone(&queue)).run());
    queue
}

/// Trusts whom the system trusts, as it did when the first connection was made.
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

fn unusable(why: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, why).into()
}
