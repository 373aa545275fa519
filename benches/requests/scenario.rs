//! The requests.

use std::io;
use std::net::SocketAddr;

use super::connection::Connection;
use super::product::API_KEY;
use super::request::{message, request, request_with, value};

/// Threads that the requests go to in turn.
const THREADS: usize = 1_000;

const MESSAGES: usize = 50;
const MANY_MESSAGES: usize = 1_000;

/// Threads whose state has nearly the largest size, and its content in addition to messages.
const LARGE_THREADS: usize = 20;
const LARGE_BYTES: usize = 900 * 1024;

/// The row of confirmed writes.
pub(super) const CONFIRMED: &str = "merge one key, confirmed by a replica";

/// Requests that cost about the same.
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) requests: Vec<Vec<u8>>,
}

impl Scenario {
    pub(super) fn floor() -> Self {
        Self {
            name: "actix handler, 200 bytes".into(),
            requests: vec![request("GET /", None, "")],
        }
    }
}

/// The scenarios, over threads that are made for them.
pub(super) async fn all(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let of_values = threads(server, THREADS, ten_values).await?;
    let of_messages = threads(server, THREADS, |n| messages(n, MESSAGES)).await?;
    let of_many = threads(server, THREADS, |n| messages(n, MANY_MESSAGES)).await?;
    let large = |n| {
        let messages = messages(n, MESSAGES);
        format!(r#"{messages},"rest":"{}""#, "x".repeat(LARGE_BYTES))
    };
    let of_much = threads(server, LARGE_THREADS, large).await?;

    let read = |(_, id): (usize, &String)| request("GET /v1/threads/current/state", Some(id), "");
    Ok(vec![
        Scenario {
            name: "read 10 keys of 100 bytes".into(),
            requests: of_values.iter().enumerate().map(read).collect(),
        },
        Scenario {
            name: "merge one key of 100 bytes".into(),
            requests: of_values.iter().enumerate().map(merge).collect(),
        },
        Scenario {
            name: "push 200 bytes, window 50".into(),
            requests: push(&of_messages, MESSAGES),
        },
        Scenario {
            name: "push 200 bytes, window 1,000".into(),
            requests: push(&of_many, MANY_MESSAGES),
        },
        Scenario {
            name: "push 200 bytes, window 50, next to 900 KiB".into(),
            requests: push(&of_much, MESSAGES),
        },
    ])
}

/// The same writes to threads of one owner: each takes turns with the row whose name its own begins with.
pub(super) async fn of_owners(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let of_values = owned(server, THREADS, ten_values).await?;
    let of_messages = owned(server, THREADS, |n| messages(n, MESSAGES)).await?;
    Ok(vec![
        Scenario {
            name: "merge one key of 100 bytes, a thread with an owner".into(),
            requests: of_values.iter().enumerate().map(merge).collect(),
        },
        Scenario {
            name: "push 200 bytes, window 50, a thread with an owner".into(),
            requests: push(&of_messages, MESSAGES),
        },
    ])
}

/// Merges whose answer waits for a replica of Redis.
pub(super) async fn confirmed(server: SocketAddr) -> io::Result<Scenario> {
    let ids = threads(server, THREADS, ten_values).await?;
    Ok(Scenario {
        name: CONFIRMED.into(),
        requests: ids.iter().enumerate().map(merge).collect(),
    })
}

fn push(ids: &[String], window: usize) -> Vec<Vec<u8>> {
    let line = format!("POST /v1/threads/current/state/messages/push?max_records={window}");
    let ids = ids.iter().enumerate();
    ids.map(|(n, id)| request(&line, Some(id), &message(n)))
        .collect()
}

fn merge((n, id): (usize, &String)) -> Vec<u8> {
    let body = format!(
        r#"{{"operations":[{{"op":"set","key":"key{}","value":{}}}]}}"#,
        n % 10,
        value(n)
    );
    request("PATCH /v1/threads/current/state", Some(id), &body)
}

/// Requests of models and applications outside of thread states, which an earlier build need not know.
pub(super) async fn of_scopes(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let ids = threads(server, THREADS, |_| String::new()).await?;
    let call = |line, body: &dyn Fn(usize) -> String| {
        let calls = ids.iter().enumerate();
        calls
            .map(|(n, id)| request(line, Some(id), &body(n)))
            .collect()
    };
    let write = |n: usize| {
        let value = value(n);
        format!(
            r#"{{"scope":"thread:current","arguments":{{"key":"k{}","value":{value}}}}}"#,
            n % 10
        )
    };
    let read = |n: usize| {
        let key = n % 10;
        format!(r#"{{"scope":"thread:current","arguments":{{"key":"k{key}"}}}}"#)
    };
    let append = |n: usize| format!(r#"{{"id":"turn-{n}","value":{}}}"#, message(n));
    Ok(vec![
        Scenario {
            name: "tool kv_write, 100 bytes".into(),
            requests: call("POST /v1/tools/kv_write", &write),
        },
        Scenario {
            name: "tool kv_read, 100 bytes".into(),
            requests: call("POST /v1/tools/kv_read", &read),
        },
        Scenario {
            name: "an item of a history, a repeat".into(),
            requests: call("POST /v1/threads/current/history", &append),
        },
    ])
}

/// The requests of a process of Agentuity's runtime on its socket: names, and the text after the ids.
pub(super) async fn of_socket(server: SocketAddr) -> io::Result<[(&'static str, Vec<String>); 2]> {
    let ids = threads(server, THREADS, ten_values).await?;
    let id = |signed: &String| signed.split(';').next().unwrap_or_default().to_owned();
    let restore = |signed| {
        format!(
            r#""action":"restore","data":{{"thread_id":"{}"}}"#,
            id(signed)
        )
    };
    let merge = |(n, signed): (usize, &String)| {
        let set = format!(
            r#"{{"op":"set","key":"key{}","value":{}}}"#,
            n % 10,
            value(n)
        );
        let data = format!(r#"{{"thread_id":"{}","operations":[{set}]}}"#, id(signed));
        format!(r#""action":"merge","data":{data}"#)
    };
    Ok([
        (
            "socket: restore 10 keys of 100 bytes",
            ids.iter().map(restore).collect(),
        ),
        (
            "socket: merge one key of 100 bytes",
            ids.iter().enumerate().map(merge).collect(),
        ),
    ])
}

/// Ten members of 100 bytes.
fn ten_values(n: usize) -> String {
    let members: Vec<_> = (0..10)
        .map(|key| format!(r#""key{key}":{}"#, value(n + key)))
        .collect();
    members.join(",")
}

fn messages(n: usize, count: usize) -> String {
    let messages: Vec<_> = (0..count).map(|m| message(n + m)).collect();
    format!(r#""messages":[{}]"#, messages.join(","))
}

/// Creates threads with these members as their states, and returns the signed ids.
async fn threads(
    server: SocketAddr,
    count: usize,
    members: impl Fn(usize) -> String,
) -> io::Result<Vec<String>> {
    let create = |n| {
        let body = format!(r#"{{"state":{{{}}}}}"#, members(n));
        request("POST /v1/threads", None, &body)
    };
    created(server, (0..count).map(create)).await
}

/// The same for threads of one owner.
async fn owned(
    server: SocketAddr,
    count: usize,
    members: impl Fn(usize) -> String,
) -> io::Result<Vec<String>> {
    let key = format!("Bearer {API_KEY}");
    let create = |n| {
        let body = format!(r#"{{"owner":"user-42","state":{{{}}}}}"#, members(n));
        request_with("POST /v1/threads", Some(("authorization", &key)), &body)
    };
    created(server, (0..count).map(create)).await
}

async fn created(
    server: SocketAddr,
    requests: impl Iterator<Item = Vec<u8>>,
) -> io::Result<Vec<String>> {
    let mut connection = Connection::open(server).await?;
    let mut ids = Vec::new();
    for request in requests {
        connection.exchange(&request).await?;
        let id = connection.header("x-thread-id");
        ids.push(id.ok_or(io::ErrorKind::InvalidData)?.to_owned());
    }
    Ok(ids)
}
