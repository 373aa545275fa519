use std::io;
use std::net::SocketAddr;

use super::conditional::repeated;
use super::connection::Connection;
use super::floor::Answer;
use super::request::request;
use super::scenario::{MESSAGES, Scenario, THREADS, messages, ten_values, threads};

/// Number of threads with 256 KiB each. All of them fit into a read cache of the default size.
const LARGE_THREADS: usize = 100;
const LARGE_VALUES: usize = 64;

/// Cache sizes so small that every read misses if threads are read in turn. Any single thread fits into the cache, but
/// at most a fifth of all threads fit at the same time.
const SMALL_FOR_KEYS: &str = "262144";
const SMALL_FOR_MESSAGES: &str = "2097152";
const SMALL_FOR_LARGE: &str = "5242880";

pub(super) async fn all(server: SocketAddr) -> io::Result<Vec<Scenario>> {
    let of_keys = threads(server, THREADS, ten_values).await?;
    let of_messages = threads(server, THREADS, |n| messages(n, MESSAGES)).await?;
    let of_much = threads(server, LARGE_THREADS, large_values).await?;
    let large = reads(&of_much);
    let conditional = conditional(server, &large).await?;
    let scenario = |name: &str, requests, floor, small_cache| Scenario {
        name: name.into(),
        requests,
        floor,
        small_cache,
    };
    Ok(vec![
        scenario(
            "read 10 keys of 100 bytes",
            reads(&of_keys),
            Answer::Small,
            Some(SMALL_FOR_KEYS),
        ),
        scenario(
            "read 50 messages of 200 bytes",
            reads(&of_messages),
            Answer::Small,
            Some(SMALL_FOR_MESSAGES),
        ),
        scenario("read 256 KiB", large, Answer::Large, Some(SMALL_FOR_LARGE)),
        scenario(
            "read 256 KiB, conditional (304)",
            conditional,
            Answer::Small,
            None,
        ),
    ])
}

pub(super) fn reads(ids: &[String]) -> Vec<Vec<u8>> {
    let read = |id: &String| request("GET /v1/threads/current/state", Some(id), "");
    ids.iter().map(read).collect()
}

async fn conditional(server: SocketAddr, reads: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
    let mut connection = Connection::open(server).await?;
    let mut requests = Vec::new();
    for read in reads {
        let request = repeated(&mut connection, read).await?;
        requests.push(request.ok_or_else(|| io::Error::other("no 304 for an unchanged state"))?);
    }
    Ok(requests)
}

fn large_values(n: usize) -> String {
    let members: Vec<_> = (0..LARGE_VALUES)
        .map(|key| format!(r#""key{key}":"{:0>4094}""#, n + key))
        .collect();
    members.join(",")
}
