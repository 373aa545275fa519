//! Measures Redis alone, with `GET` commands for values of 256 KiB.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::load::{CONNECTIONS, Outcome, run_on_all};

const KEYS: usize = 100;
const BYTES: usize = 256 << 10;

pub(super) struct PlainGet {
    connections: Vec<TcpStream>,
}

impl PlainGet {
    pub(super) async fn open(redis: SocketAddr) -> io::Result<Self> {
        let opening = (0..CONNECTIONS).map(|_| TcpStream::connect(redis));
        let mut connections = try_join_all(opening).await?;
        for connection in &connections {
            connection.set_nodelay(true)?;
        }
        let text = "x".repeat(BYTES);
        for n in 0..KEYS {
            let key = key(n);
            let length = key.len();
            let set = format!("*3\r\n$3\r\nSET\r\n${length}\r\n{key}\r\n${BYTES}\r\n{text}\r\n");
            exchange(&mut connections[0], &set, "+OK\r\n", 0).await?;
        }
        Ok(Self { connections })
    }

    pub(super) async fn run(&mut self, time: Duration) -> io::Result<Outcome> {
        let head = format!("${BYTES}\r\n");
        let ask = async |connection: &mut TcpStream, n| {
            let key = key(n % KEYS);
            let get = format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len());
            exchange(connection, &get, &head, BYTES + 2).await
        };
        run_on_all(&mut self.connections, &Cell::new(0), time, ask).await
    }
}

fn key(n: usize) -> String {
    format!("plain-{n}")
}

/// Sends a command, and reads a reply that consists of `head` followed by `rest` more bytes.
async fn exchange(
    connection: &mut TcpStream,
    command: &str,
    head: &str,
    rest: usize,
) -> io::Result<()> {
    connection.write_all(command.as_bytes()).await?;
    let length = head.len() + rest;
    let mut answer = Vec::with_capacity(length);
    while answer.len() < length {
        if connection.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let is_expected = answer.iter().zip(head.as_bytes()).all(|(a, b)| a == b);
        if !is_expected {
            let answer = String::from_utf8_lossy(&answer);
            return Err(io::Error::other(format!("Redis answered {answer}")));
        }
    }
    Ok(())
}
