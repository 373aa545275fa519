use std::fs;

use futures_util::future::join_all;

use crate::support::client::Client;
use crate::support::redis::RedisServer;
use crate::support::server::{Backend, Server};
use crate::support::until;

const STREAMS_MAX: usize = 2_000;

fn open_files_max() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    soft.unwrap_or(1_024)
}

async fn open_streams(client: &Client) -> usize {
    let page = client.get("/metrics").ok().await.text();
    let series = r#"threadkeep_event_streams{of="thread"} "#;
    let count = page.lines().find_map(|line| line.strip_prefix(series));
    count.unwrap().parse().unwrap()
}

async fn measure_many_streams(server: &Server, count: impl Fn() -> usize) -> (usize, usize) {
    let stream_count = STREAMS_MAX.min(open_files_max() * 2 / 5);
    let client = server.client();
    let threads: Vec<_> = (0..stream_count).map(|_| client.thread()).collect();
    // each worker opens its own Redis connection on its first request
    join_all(threads[..50].iter().map(|thread| thread.get("").ok())).await;
    drop(threads[0].get("events").listen().await);
    let before = count();

    let mut streams = Vec::new();
    for batch in threads.chunks(50) {
        let opening = batch.iter().map(|thread| thread.get("events").listen());
        streams.extend(join_all(opening).await);
    }

    until(async || open_streams(&client).await >= stream_count).await;
    let meanwhile = count();
    for index in [0, stream_count / 2, stream_count - 1] {
        threads[index].put("state/k", "1").ok().await;
        assert_eq!(streams[index].next().await.words(), "thread.created 1");
    }
    (before, meanwhile)
}

#[tokio::test]
async fn the_embedded_store_serves_many_streams() {
    measure_many_streams(&Server::start(Backend::Memory), || 0).await;
}

#[tokio::test]
async fn streams_share_connections_to_redis() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let mut connection = redis.connection();
    let connections = std::cell::RefCell::new(&mut connection);

    let (before, meanwhile) = measure_many_streams(&server, || {
        let list: String = ::redis::cmd("CLIENT")
            .arg("LIST")
            .query(&mut connections.borrow_mut())
            .unwrap();
        list.lines().count()
    })
    .await;

    // background work may open a few connections at any time
    assert!(meanwhile < before + 10, "{before}, then {meanwhile}");
}

#[tokio::test]
async fn closed_streams_are_noticed() {
    let server = Server::start(Backend::Memory);
    let client = server.client();
    let thread = client.thread();
    let events = thread.get("events").listen().await;

    drop(events);
    // the first write after the disconnection may still succeed, but the second fails
    let are_closed = || async {
        thread.put("state/k", "1").ok().await;
        open_streams(&client).await == 0
    };
    until(are_closed).await;
}
