//! The connection of the system, encrypted or not.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::select_ok;
use redis::{ConnectionAddr, ErrorKind, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};

use super::driver::Driver;
use super::queue::Queue;
#[cfg(feature = "tls")]
use super::tls;

/// Opens a connection and has a task of this runtime drive it.
pub(super) async fn open(addr: &ConnectionAddr) -> Result<Arc<Queue>, RedisError> {
    match addr {
        ConnectionAddr::Tcp(host, port) => Ok(drive(tcp(host, *port).await?)),
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure: false,
            ..
        } => Ok(drive(tls::connect(host, tcp(host, *port).await?).await?)),
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

fn unusable(why: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, why).into()
}
