//! Requests to all peers except threadkeep and Webdis. Each state is stored as one document.

use std::io;

use super::connection::Connection;
use super::content::{Content, key};
use super::operation::Operation;
use super::request::{message, request_with, value};

pub(super) async fn create(connection: &mut Connection, content: &Content) -> io::Result<String> {
    let create = request_with("PUT /state", None, &content.json());
    connection.exchange(&create).await?;
    let cookie = connection.header("set-cookie");
    let cookie = cookie.and_then(|cookie| cookie.split(';').next());
    cookie
        .map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(super) fn request(operation: Operation, cookie: &str, n: usize) -> Vec<u8> {
    let (line, body) = match operation {
        Operation::Read(..) | Operation::ReadUnchanged => ("GET /state".into(), String::new()),
        Operation::Merge => {
            let body = format!(r#"{{"{}":{}}}"#, key(n % 10), value(n));
            ("PATCH /state".into(), body)
        }
        Operation::Push(window) => (format!("POST /state/messages?window={window}"), message(n)),
    };
    request_with(&line, Some(("cookie", cookie)), &body)
}
