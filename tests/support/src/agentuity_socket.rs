//! A scripted client of Agentuity's WebSocket protocol. Uses a different WebSocket library than the server.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::server::{API_SECRET, Server};

const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// FIN bit and opcodes in the first byte of a frame (RFC 6455, section 5.2).
pub const FIN: u8 = 0x80;
pub const TEXT: u8 = 1;
pub const CONTINUATION: u8 = 0;

#[derive(Debug)]
pub struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}/thread/ws");
        let (socket, response) = client_async(url, stream).await.unwrap();
        assert_eq!(response.status(), 101);
        Self(socket)
    }

    pub async fn open(server: &Server) -> Self {
        Self::open_at(server.address(), API_SECRET).await
    }

    pub async fn open_at(address: SocketAddr, key: &str) -> Self {
        let mut socket = Self::connect(address).await;
        let answer = socket.authenticate(key).await;
        assert_eq!(answer, r#"{"success":true}"#);
        socket
    }

    pub async fn authenticate(&mut self, key: &str) -> String {
        self.send(&json!({"authorization": key}).to_string()).await;
        self.text().await
    }

    pub async fn send(&mut self, text: &str) {
        self.send_message(Message::text(text)).await;
    }

    pub async fn send_message(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    /// Sends a frame without checks. Also sends frames that the WebSocket library would refuse to send.
    pub async fn send_frame(&mut self, first_byte: u8, payload: &[u8]) {
        self.send_bytes(&frame(first_byte, payload)).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    /// Closes the sending side without a close frame.
    pub async fn hang_up(&mut self) {
        self.0.get_mut().shutdown().await.unwrap();
    }

    pub async fn request(&mut self, id: &str, action: &str, data: &str) {
        self.send(&request(id, action, data)).await;
    }

    /// Returns the next message of any kind, or `None` when the connection has ended. After a ping, the WebSocket
    /// library sends the pong on the next read or write.
    pub async fn next(&mut self) -> Option<Message> {
        let next = timeout(WAIT_LIMIT, self.0.next()).await;
        next.expect("a message should arrive")?.ok()
    }

    pub async fn bytes(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let reading = self.0.get_mut().read_to_end(&mut bytes);
        timeout(WAIT_LIMIT, reading)
            .await
            .expect("the connection should end")
            .unwrap();
        bytes
    }

    pub async fn next_except_pings(&mut self) -> Option<Message> {
        loop {
            match self.next().await {
                Some(Message::Ping(_)) => {}
                other => return other,
            }
        }
    }

    pub async fn text(&mut self) -> String {
        match self.next_except_pings().await {
            Some(Message::Text(text)) => text.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    pub async fn answer(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    pub async fn ask(&mut self, action: &str, data: &str) -> Value {
        let id = format!("{:032x}", rand::random::<u128>());
        self.request(&id, action, data).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub async fn ok(&mut self, action: &str, data: &str) -> Option<String> {
        let answer = self.ask(action, data).await;
        assert_eq!(answer["success"], true, "{answer}");
        let data = answer.get("data")?;
        Some(data.as_str().unwrap().to_owned())
    }

    pub async fn refused(&mut self, action: &str, data: &str) -> String {
        let answer = self.ask(action, data).await;
        assert_eq!(answer["success"], false, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    }

    pub async fn restore(&mut self, thread: &str) -> Option<String> {
        self.ok("restore", &about(thread, &[])).await
    }

    pub async fn save(&mut self, thread: &str, state: &str) {
        let envelope = Value::String(format!(r#"{{"state":{state}}}"#)).to_string();
        let data = about(thread, &[("user_data", &envelope)]);
        self.ok("save", &data).await;
    }

    pub async fn merge(&mut self, thread: &str, operations: &str) {
        let data = about(thread, &[("operations", operations)]);
        self.ok("merge", &data).await;
    }

    pub async fn closed(&mut self) -> u16 {
        match self.next_except_pings().await {
            Some(Message::Close(Some(frame))) => frame.code.into(),
            other => panic!("not closed: {other:?}"),
        }
    }
}

pub fn request(id: &str, action: &str, data: &str) -> String {
    format!(r#"{{"id":"{id}","action":"{action}","data":{data}}}"#)
}

pub fn about(thread: &str, members: &[(&str, &str)]) -> String {
    let mut data = format!(r#"{{"thread_id":"{thread}""#);
    for (name, json) in members {
        data.push_str(&format!(r#","{name}":{json}"#));
    }
    data.push('}');
    data
}

pub fn push(thread: &str, number: usize) -> String {
    let push = format!(r#"[{{"op":"push","key":"list","value":{number}}}]"#);
    about(thread, &[("operations", &push)])
}

pub fn frame(first_byte: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first_byte];
    match payload.len() {
        length @ ..126 => frame.push(0x80 | length as u8),
        length @ ..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    let mask: [u8; 4] = rand::random();
    frame.extend(mask);
    let masked = payload.iter().zip(mask.iter().cycle());
    frame.extend(masked.map(|(byte, mask)| byte ^ mask));
    frame
}
