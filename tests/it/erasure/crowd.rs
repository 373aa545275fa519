use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::client::{Client, OwnThread};
use crate::support::server::{API_SECRET, Backend, Server};

/// Number of the owner's threads, unless `TEST_ERASED_THREADS` is set.
const THREADS: usize = 1_000;
const WRITERS: usize = 16;
const LIMIT: Duration = Duration::from_secs(600);

fn threads() -> usize {
    let number = std::env::var("TEST_ERASED_THREADS").ok();
    number.map_or(THREADS, |number| number.parse().unwrap())
}

async fn create(client: &Client, owner: &str) -> OwnThread {
    let body = json!({"owner": owner, "state": {"k": 1}});
    let made = client.back_end("/v1/threads", &body).ok().await.json();
    client.thread_of(made["id"].as_str().unwrap())
}

fn owner(client: &Client, method: Method, owner: &str) -> crate::support::client::Request {
    let path = format!("/v1/owners/{owner}");
    client.request(method, &path).bearer(API_SECRET)
}

async fn erased_threads_never_come_back(backend: Backend) {
    // tombstones (markers that reject writes to ended threads) must outlast the last write to each thread
    let start = || {
        let server = Server::builder(backend);
        server.set("THREADKEEP_TOMBSTONE_SECONDS", 3_600).start()
    };
    let servers = match backend {
        Backend::Memory => vec![start()],
        Backend::Redis => {
            let first = start();
            let second = first.settings().start();
            vec![first, second]
        }
    };
    let client = servers[0].client();
    let name = format!("user-{:032x}", rand::random::<u128>());
    let per_writer = threads() / WRITERS;
    let made = (0..WRITERS).map(async |writer| {
        let client = servers[writer % servers.len()].client();
        let mut made = Vec::new();
        for _ in 0..per_writer {
            made.push(create(&client, &name).await);
        }
        made
    });
    let groups = join_all(made).await;
    let total = (per_writer * WRITERS) as u64;
    let (is_done, rejected) = (AtomicBool::new(false), AtomicU64::new(0));

    let writers = join_all(groups.iter().map(async |threads| {
        while !is_done.load(Ordering::Relaxed) {
            for thread in threads {
                let answer = thread.post("state/list/push", "1").send().await;
                match answer.status {
                    200 => {}
                    410 => {
                        rejected.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => panic!("{}", answer.text()),
                }
            }
        }
    }));
    let eraser = async {
        let mut last = owner(&client, Method::DELETE, &name).send().await;
        while last.status == 202 {
            assert_eq!(last.json()["complete"], false);
            last = owner(&client, Method::DELETE, &name).send().await;
        }
        // wait for one more rejected write per thread
        let before = rejected.load(Ordering::Relaxed);
        while rejected.load(Ordering::Relaxed) < before + total {
            sleep(Duration::from_millis(10)).await;
        }
        is_done.store(true, Ordering::Relaxed);
        last
    };
    let limit = LIMIT * threads().div_ceil(1_000) as u32;
    let (_, last) = timeout(limit, async { tokio::join!(writers, eraser) })
        .await
        .unwrap();

    assert_eq!(last.status, 200);
    let erased = last.json();
    assert_eq!(erased["complete"], true);
    // the answer to the last request counts all erased threads, including those that earlier requests erased
    assert_eq!(erased["threads"], total, "{erased}");
    let owned = owner(&client, Method::GET, &name).ok().await.json();
    assert_eq!(owned["threads"], 0);
    let path = format!("/v1/threads?owner={name}");
    let listed = client.get(&path).bearer(API_SECRET).ok().await.json();
    assert_eq!(listed, json!({"threads": [], "next_cursor": Value::Null}));
    for thread in groups.iter().flatten().step_by(10) {
        assert_eq!(thread.get("state").ok().await.json(), json!({}));
        let archive = format!("/v1/archives/{}", thread.id);
        let archive = client.get(&archive).bearer(API_SECRET).send().await;
        assert_eq!(archive.status, 404);
    }
}

mod memory {
    use super::Backend;

    #[tokio::test]
    async fn erased_threads_never_come_back() {
        super::erased_threads_never_come_back(Backend::Memory).await;
    }
}

mod redis {
    use super::Backend;

    #[tokio::test]
    async fn erased_threads_never_come_back() {
        super::erased_threads_never_come_back(Backend::Redis).await;
    }
}
