//! Sends bytes on a socket, for requests that a correct client would not send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time limit for an answer, on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// Sends bytes on a new connection. Returns all bytes received until the server closes the connection, so requests
/// should contain `connection: close`.
pub async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_ref()).await.unwrap();
    read_to_end(&mut stream).await
}

pub async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    timeout(WAIT_LIMIT, stream.read_to_end(&mut answer))
        .await
        .expect("the server should close the connection")
        .unwrap();
    String::from_utf8(answer).unwrap()
}

pub fn status(response: &str) -> u16 {
    response
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("no response: {response:?}"))
}

pub async fn read_response(stream: &mut TcpStream) -> String {
    let head = read_head(stream).await;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, length)| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    timeout(WAIT_LIMIT, stream.read_exact(&mut body))
        .await
        .expect("the body should arrive")
        .unwrap();
    head + &String::from_utf8(body).unwrap()
}

pub async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let reading = async {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
    };
    timeout(WAIT_LIMIT, reading)
        .await
        .expect("the response should arrive");
    String::from_utf8(head).unwrap()
}
