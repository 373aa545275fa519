//! The API of Webdis, which runs Redis commands. A state is a hash, and its messages are a list. Values are JSON
//! strings that neither Redis nor Webdis parses.

use std::io;

use serde_json::{Map, Value};

use super::connection::Connection;
use super::content::{Content, key};
use super::operation::{Operation, Size};
use super::request::{message, request_with, value};

/// Script that appends a message and trims the list in one request. Separate commands would need two requests.
const PUSH: &str = "redis.call('RPUSH', KEYS[1], ARGV[2]) \
    redis.call('LTRIM', KEYS[1], -ARGV[1], -1) \
    return redis.call('LLEN', KEYS[1])";

const MAKE: &str = "local lines = {} \
    for line in ARGV[2]:gmatch('[^\\n]+') do lines[#lines + 1] = line end \
    return redis.call(ARGV[1], KEYS[1], unpack(lines))";

#[derive(Debug)]
pub(super) struct Scripts {
    push: String,
    make: String,
}

impl Scripts {
    pub(super) async fn load(connection: &mut Connection) -> io::Result<Self> {
        Ok(Self {
            push: load(connection, PUSH).await?,
            make: load(connection, MAKE).await?,
        })
    }
}

async fn load(connection: &mut Connection, script: &str) -> io::Result<String> {
    let request = request_with("PUT /SCRIPT/LOAD", None, script);
    let answer: Value = serde_json::from_slice(connection.exchange(&request).await?)?;
    let name = answer["SCRIPT"].as_str().map(str::to_owned);
    name.ok_or_else(|| io::Error::other(answer.to_string()))
}

pub(super) async fn create(
    connection: &mut Connection,
    scripts: &Scripts,
    name: &str,
    content: &Content,
) -> io::Result<String> {
    let (command, lines) = match content {
        Content::Keys(keys) => {
            let lines = keys.iter().map(|(key, value)| format!("{key}\n{value}"));
            ("HSET", lines.collect::<Vec<_>>())
        }
        Content::Messages(messages) => ("RPUSH", messages.clone()),
    };
    let line = format!("PUT /EVALSHA/{}/1/{name}/{command}", scripts.make);
    let request = request_with(&line, None, &lines.join("\n"));
    connection.exchange(&request).await?;
    Ok(name.to_owned())
}

pub(super) fn request(scripts: &Scripts, operation: Operation, name: &str, n: usize) -> Vec<u8> {
    let (line, body) = match operation {
        Operation::Read(Size::Messages, _) => (format!("GET /LRANGE/{name}/0/-1"), String::new()),
        Operation::Read(..) | Operation::ReadUnchanged => {
            (format!("GET /HGETALL/{name}"), String::new())
        }
        Operation::Merge => (format!("PUT /HSET/{name}/{}", key(n % 10)), value(n)),
        Operation::Push(window) => {
            let line = format!("PUT /EVALSHA/{}/1/{name}/{window}", scripts.push);
            (line, message(n))
        }
    };
    request_with(&line, None, &body)
}

pub(super) fn state(answer: &[u8]) -> io::Result<Value> {
    let mut answer: Map<String, Value> = serde_json::from_slice(answer)?;
    if let Some(Value::Object(hash)) = answer.remove("HGETALL") {
        let members = hash.into_iter().map(|(key, text)| Ok((key, parse(&text)?)));
        return members
            .collect::<io::Result<Map<_, _>>>()
            .map(Value::Object);
    }
    if let Some(Value::Array(list)) = answer.remove("LRANGE") {
        let messages: io::Result<Vec<_>> = list.iter().map(parse).collect();
        return Ok(Value::Object(Map::from_iter([(
            "messages".into(),
            messages?.into(),
        )])));
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn parse(text: &Value) -> io::Result<Value> {
    Ok(serde_json::from_str(text.as_str().unwrap_or_default())?)
}
