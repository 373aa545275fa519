#[cfg(target_os = "linux")]
use std::time::Duration;

use actix_web::rt::net::TcpStream;
#[cfg(target_os = "linux")]
use socket2::SockRef;

/// How long sent data may remain unacknowledged. An event stream does not end by itself, so without a time limit, a
/// stalled client would occupy its buffers forever.
#[cfg(target_os = "linux")]
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the operating system close a connection if the client does not acknowledge data for [`SEND_TIMEOUT`] (see
/// `TCP_USER_TIMEOUT` in `tcp(7)`).
#[cfg(target_os = "linux")]
pub(super) fn set_send_timeout(stream: &TcpStream) {
    if let Err(error) = SockRef::from(stream).set_tcp_user_timeout(Some(SEND_TIMEOUT)) {
        tracing::debug!(%error, "cannot set TCP_USER_TIMEOUT on a connection");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn set_send_timeout(_: &TcpStream) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use actix_web::rt::net::TcpListener;

    use super::*;

    #[actix_web::test]
    async fn the_send_timeout_is_set_on_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();

        set_send_timeout(&stream);

        let limit = SockRef::from(&stream).tcp_user_timeout().unwrap();
        assert_eq!(limit, Some(SEND_TIMEOUT));
    }
}
