use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::support::client::OwnThread;
use crate::support::redis::RedisServer;
use crate::support::server::{Backend, Server};
use crate::support::until;

async fn kill_and_restart(redis: &Arc<RedisServer>, thread: &OwnThread) {
    redis.kill();
    let back = Arc::clone(redis);
    spawn_blocking(move || back.restart()).await.unwrap();
    until(async || thread.get("state").send().await.status == 200).await;
}

async fn is_not_modified(thread: &OwnThread, tag: &str) -> bool {
    let read = thread
        .get("state")
        .header("if-none-match", tag)
        .send()
        .await;
    read.status == 304
}

#[tokio::test]
async fn an_etag_of_a_lost_version_matches_only_once_that_version_is_written_again() {
    let redis = Arc::new(RedisServer::start());
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let thread = server.client().thread();
    let saved = thread.put("state/k", "1").ok().await;
    redis.call(&["SAVE"]);
    let lost = thread.put("state/k", "2").ok().await;
    let later = thread.put("state/k", "3").ok().await;

    kill_and_restart(&redis, &thread).await;

    assert_eq!(thread.state().await, r#"{"k":1}"#);
    assert!(is_not_modified(&thread, saved.etag()).await);
    for tag in [lost.etag(), later.etag()] {
        assert!(!is_not_modified(&thread, tag).await);
        let write = thread.put("state/k", "9").header("if-match", tag);
        write.refused(412, "version_mismatch").await;
    }
    // the only case in which different content has the same tag
    let again = thread.put("state/other", "2").ok().await;
    assert_eq!(again.etag(), lost.etag());
    assert!(is_not_modified(&thread, lost.etag()).await);
    assert!(!is_not_modified(&thread, later.etag()).await);
}

#[tokio::test]
async fn an_etag_of_a_lost_thread_never_matches_another() {
    let redis = Arc::new(RedisServer::start());
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let thread = server.client().thread();
    let mut tags = Vec::new();
    for round in 0..3 {
        for value in ["1", "2"] {
            let written = thread.put("state/k", value).ok().await;
            tags.push(written.etag().to_owned());
        }
        match round {
            // Redis restarts without any data
            0 => kill_and_restart(&redis, &thread).await,
            1 => drop(redis.call(&["FLUSHALL"])),
            _ => drop(thread.by_api_key(reqwest::Method::DELETE, "").ok().await),
        }
        for tag in &tags {
            assert!(!is_not_modified(&thread, tag).await);
        }
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 6);
}
