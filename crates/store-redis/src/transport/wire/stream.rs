use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::select_ok;
use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ErrorKind, RedisError};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};

use super::{Driver, Queue};
use crate::transport::Endpoint;
#[cfg(feature = "tls")]
use crate::transport::tls;

pub(super) async fn open(endpoint: &Endpoint) -> Result<Arc<Queue>, RedisError> {
    let info = endpoint.info();
    let settings = info.tcp_settings();
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => Ok(drive(tcp(host, *port, settings).await?)),
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            ..
        } => {
            let config = endpoint.encryption().await?;
            let stream = tcp(host, *port, settings).await?;
            Ok(drive(tls::connect(host, stream, config).await?))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(drive(UnixStream::connect(path).await?)),
        _ => Err(unusable("the address is of no known kind")),
    }
}

async fn tcp(host: &str, port: u16, settings: &TcpSettings) -> io::Result<TcpStream> {
    // connects to all addresses in parallel, so that an address that does not answer does not cause a delay
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
    stream.set_nodelay(settings.nodelay())?;
    if let Some(keepalive) = settings.keepalive() {
        SockRef::from(&stream).set_tcp_keepalive(keepalive)?;
    }
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

fn unusable(why: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, why).into()
}
