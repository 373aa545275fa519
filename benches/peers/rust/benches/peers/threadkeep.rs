use std::io;

use super::connection::Connection;
use super::content::{Content, key};
use super::operation::Operation;
use super::request::{self, message, value};

pub(super) async fn create(connection: &mut Connection, content: &Content) -> io::Result<String> {
    let body = format!(r#"{{"state":{}}}"#, content.json());
    let create = request::request("POST /v1/threads", None, &body);
    connection.exchange(&create).await?;
    let id = connection.header("x-thread-id").map(str::to_owned);
    id.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(super) fn request(operation: Operation, id: &str, n: usize) -> Vec<u8> {
    let (line, body) = match operation {
        Operation::Read(..) | Operation::ReadUnchanged => {
            ("GET /v1/threads/current/state".into(), String::new())
        }
        Operation::Merge => {
            let (key, value) = (key(n % 10), value(n));
            let set = format!(r#"{{"op":"set","key":"{key}","value":{value}}}"#);
            let body = format!(r#"{{"operations":[{set}]}}"#);
            ("PATCH /v1/threads/current/state".into(), body)
        }
        Operation::Push(window) => {
            let path = "/v1/threads/current/state/messages/push";
            (format!("POST {path}?max_records={window}"), message(n))
        }
    };
    request::request(&line, Some(id), &body)
}
