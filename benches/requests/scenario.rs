use std::io;
use std::net::SocketAddr;

use super::connection::Connection;
use super::floor::Answer;
use super::product::API_KEY;
use super::request::{message, request, request_with, value};

pub(super) const THREADS: usize = 1_000;

pub(super) const MESSAGES: usize = 50;
const MANY_MESSAGES: usize = 1_000;

/// Number of threads whose states are almost as large as allowed.
const LARGE_THREADS: usize = 20;
const LARGE_BYTES: usize = 900 * 1024;

pub(super) const CONFIRMED: &str = "merge one key, confirmed by a replica";

pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) requests: Vec<Vec<u8>>,
    pub(super) floor: Answer,
    /// A cache size so small that every read misses. `None` if the requests do not read content.
    pub(super) small_cache: Option<&'static str>,
}

impl Scenario {
    /// Creates a scenario of requests that do not read content and have short responses.
    fn new(name: &str, requests: Vec<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            requests,
            floor: Answer::Small,
            small_cache: None,
        }
    }

    pub(super) fn floor(answer: Answer) -> Self {
        Self::new(answer.name(), vec![answer.request()])
    }
}

pub(super) async fn writes(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let of_messages = threads(server, THREADS, |n| messages(n, MESSAGES)).await?;
    let of_many = threads(server, THREADS, |n| messages(n, MANY_MESSAGES)).await?;
    let large = |n| {
        let messages = messages(n, MESSAGES);
        format!(r#"{messages},"rest":"{}""#, "x".repeat(LARGE_BYTES))
    };
    let of_much = threads(server, LARGE_THREADS, large).await?;

    Ok(vec![
        merges(server).await?,
        Scenario::new("push 200 bytes, window 50", push(&of_messages, MESSAGES)),
        Scenario::new(
            "push 200 bytes, window 1,000",
            push(&of_many, MANY_MESSAGES),
        ),
        Scenario::new(
            "push 200 bytes, window 50, next to 900 KiB",
            push(&of_much, MESSAGES),
        ),
    ])
}

pub(super) async fn merges(server: SocketAddr) -> io::Result<Scenario> {
    let ids = threads(server, THREADS, ten_values).await?;
    let requests = ids.iter().enumerate().map(merge).collect();
    Ok(Scenario::new("merge one key of 100 bytes", requests))
}

/// Returns scenarios for threads with an owner. Each name begins with the name of the same scenario without an owner.
pub(super) async fn of_owners(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let of_values = owned(server, THREADS, ten_values).await?;
    let of_messages = owned(server, THREADS, |n| messages(n, MESSAGES)).await?;
    Ok(vec![
        Scenario::new(
            "merge one key of 100 bytes, a thread with an owner",
            of_values.iter().enumerate().map(merge).collect(),
        ),
        Scenario::new(
            "push 200 bytes, window 50, a thread with an owner",
            push(&of_messages, MESSAGES),
        ),
    ])
}

pub(super) async fn confirmed(server: SocketAddr) -> io::Result<Scenario> {
    Ok(Scenario {
        name: CONFIRMED.into(),
        ..merges(server).await?
    })
}

pub(super) fn push(ids: &[String], window: usize) -> Vec<Vec<u8>> {
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

/// Returns scenarios for data that is not part of a thread's state. Old servers may not support all of these requests.
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
        Scenario::new(
            "tool kv_write, 100 bytes",
            call("POST /v1/tools/kv_write", &write),
        ),
        Scenario::new(
            "tool kv_read, 100 bytes",
            call("POST /v1/tools/kv_read", &read),
        ),
        Scenario::new(
            "an item of a history, a repeat",
            call("POST /v1/threads/current/history", &append),
        ),
    ])
}

/// Returns named lists of requests, without their ids, that an Agentuity runtime process sends over its socket.
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

pub(super) fn ten_values(n: usize) -> String {
    let members: Vec<_> = (0..10)
        .map(|key| format!(r#""key{key}":{}"#, value(n + key)))
        .collect();
    members.join(",")
}

pub(super) fn messages(n: usize, count: usize) -> String {
    let messages: Vec<_> = (0..count).map(|m| message(n + m)).collect();
    format!(r#""messages":[{}]"#, messages.join(","))
}

pub(super) async fn threads(
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
