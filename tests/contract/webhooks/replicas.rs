use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;

use super::{hooks, make, open_server, path_of};
use crate::support::receiver::Receiver;
use crate::support::server::Backend;
use crate::support::until;

const DELIVERED: &str = r#"threadkeep_deliveries_total{consumer="webhook",outcome="delivered"}"#;

fn delivered_ids(receiver: &Receiver) -> HashSet<String> {
    let taken = receiver.taken("/a");
    taken.iter().map(|delivery| delivery.id().into()).collect()
}

async fn await_distinct(receiver: &Receiver, count: usize) {
    until(async || delivered_ids(receiver).len() == count).await;
}

#[tokio::test]
async fn an_endpoint_receives_the_events_of_all_replicas_once() {
    let one = open_server(Backend::Redis);
    let other = one.settings().start();
    let receiver = Receiver::start().await;
    make(&one.client(), &receiver.url("/a"), &["thread.created"]).await;

    // wait until both replicas make deliveries, because an event may arrive twice until they share the work
    let written = AtomicUsize::new(0);
    until(async || {
        one.client().thread().put("state/k", "1").ok().await;
        written.fetch_add(1, Ordering::Relaxed);
        one.metric(DELIVERED).await > 0 && other.metric(DELIVERED).await > 0
    })
    .await;
    let written = written.into_inner();
    await_distinct(&receiver, written).await;
    let earlier = delivered_ids(&receiver);

    for _ in 0..100 {
        for server in [&one, &other] {
            server.client().thread().put("state/k", "1").ok().await;
        }
    }
    await_distinct(&receiver, written + 200).await;

    let taken = receiver.taken("/a");
    let of_both = taken.iter().filter(|one| !earlier.contains(one.id()));
    assert_eq!(of_both.count(), 200);
}

#[tokio::test]
async fn another_replica_delivers_what_a_killed_one_has_not() {
    let one = open_server(Backend::Redis);
    let other = one.settings().start();
    let receiver = Receiver::start().await;
    make(&one.client(), &receiver.url("/a"), &["thread.created"]).await;

    for _ in 0..50 {
        one.client().thread().put("state/k", "1").ok().await;
    }
    one.kill();
    for _ in 0..50 {
        other.client().thread().put("state/k", "1").ok().await;
    }

    await_distinct(&receiver, 100).await;
}

#[tokio::test]
async fn an_endpoint_deleted_on_one_replica_is_gone_on_all() {
    let one = open_server(Backend::Redis);
    let other = one.settings().start();
    let receiver = Receiver::start().await;
    let made = make(&one.client(), &receiver.url("/a"), &["thread.created"]).await;
    one.client().thread().put("state/k", "1").ok().await;
    receiver.await_accepted("/a", 1).await;

    hooks(&other.client(), Method::DELETE, &path_of(&made))
        .ok()
        .await;

    let read = hooks(&one.client(), Method::GET, &path_of(&made));
    read.refused(404, "not_found").await;
    let last = make(&one.client(), &receiver.url("/b"), &["thread.created"]).await;
    let before = receiver.got("/a").len();
    for _ in 0..50 {
        other.client().thread().put("state/k", "1").ok().await;
    }
    receiver.await_accepted("/b", 50).await;
    assert_eq!(receiver.got("/a").len(), before, "{last}");
}
