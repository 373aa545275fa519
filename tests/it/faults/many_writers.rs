use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;

use super::{PATIENCE, distinct_numbers, servers_within, threads};
use crate::support::redis;

const MESSAGES: u64 = 10_000;
const WRITERS: usize = 64;

#[tokio::test]
async fn ten_thousand_pushes_by_64_writers_over_3_servers_are_all_stored() {
    let redis = redis::shared();
    let urls = [redis.url(), redis.url(), redis.url()];
    let servers = servers_within(PATIENCE, &urls, 0);
    let addresses: Vec<_> = servers.iter().map(super::Server::address).collect();
    let threads = threads(&addresses);
    let next = AtomicU64::new(0);

    let receipts = join_all((0..WRITERS).map(async |writer| {
        let thread = &threads[writer % threads.len()];
        let mut receipts = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= MESSAGES {
                return receipts;
            }
            let pushed = thread.post("state/messages/push", &number.to_string());
            let receipt = pushed.ok().await.json();
            let [version, length] =
                ["version", "length"].map(|field| receipt[field].as_u64().unwrap());
            receipts.push((version, length));
        }
    }))
    .await;

    let mut receipts = receipts.concat();
    receipts.sort_unstable();
    let expected: Vec<_> = (1..=MESSAGES).map(|n| (n, n)).collect();
    assert_eq!(receipts, expected);
    let found = distinct_numbers(&threads[0], "messages").await;
    assert_eq!(found, (0..MESSAGES).collect());
    assert_eq!(threads[1].object().await["version"], MESSAGES);
}
