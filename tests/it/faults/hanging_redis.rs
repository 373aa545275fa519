//! Redis is there and does not answer.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{OwnThread, SLACK, Server, TIMEOUT, address, url};
use crate::support::client::Request;
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis::{self, RedisServer};
use crate::support::server::Backend;
use crate::support::until;

/// One of each kind of request that goes to the store.
fn requests(thread: &OwnThread) -> Vec<Request> {
    vec![
        thread.get(""),
        thread.get("state"),
        thread.get("state/k"),
        thread.get("state/k?tail=1"),
        thread.get("keys"),
        thread.put("state/k", "[1]"),
        thread.post("state/k/push", "1"),
        thread.post("state/n/increment", "{}"),
        thread.merge(r#"[{"op":"clear"}]"#),
        thread.merge_patch(r#"{"o":{"a":1}}"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
    ]
}

/// Each of these is answered in time, by 503.
async fn assert_unavailable_in_time(requests: Vec<Request>) {
    join_all(requests.into_iter().map(async |request| {
        let start = Instant::now();
        request.refused(503, "store_unavailable").await;
        let took = start.elapsed();
        assert!(took < TIMEOUT + SLACK, "{took:?}");
    }))
    .await;
}

/// The server works again, soon and by itself.
async fn assert_recovers(thread: &OwnThread) {
    let start = Instant::now();
    let works = async || thread.put("state/k", "[1]").send().await.status == 200;
    until(works).await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(works().await);
}

#[tokio::test]
async fn no_request_waits_longer_than_its_timeout_for_a_stopped_redis() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let client = server.client();
    client.thread().put("state/k", "[1]").ok().await;

    redis.suspend();
    assert_unavailable_in_time(requests(&client.thread())).await;
    assert_unavailable_in_time(requests(&client.thread())).await;
    assert_eq!(client.get("/healthz").send().await.status, 200);
    assert_eq!(client.get("/readyz").send().await.status, 503);
    redis.resume();

    assert_recovers(&client.thread()).await;
}

#[tokio::test]
async fn no_request_waits_longer_than_its_timeout_on_a_dead_link() {
    let redis = redis::shared();
    let proxy = Proxy::start(address(&redis));
    let settings = Server::builder(Backend::Memory).redis(&url(proxy.address()));
    let server = settings.start();
    let thread = server.client().thread();
    thread.put("state/k", "[1]").ok().await;

    proxy.set(Mode::Hanging);
    assert_unavailable_in_time(requests(&thread)).await;
    proxy.set(Mode::Refusing);
    proxy.cut();
    assert_unavailable_in_time(requests(&thread)).await;
    proxy.set(Mode::Open);

    assert_recovers(&thread).await;
}
