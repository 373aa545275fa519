use std::time::{Duration, SystemTime};

use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{hooks, make, open_builder, open_server, path_of};
use crate::http::with_own_servers;
use crate::support::client::OwnThread;
use crate::support::receiver::{AnswerMode, Receiver};
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

const ENDS: [&str; 1] = ["thread.destroyed"];
const LIFE: [&str; 2] = ["thread.created", "thread.destroyed"];

fn expected_words(event: &str, thread: &OwnThread) -> String {
    format!("{event} {}", thread.id)
}

async fn a_destroyed_thread_is_delivered_signed_with_its_state(backend: Backend) {
    let server = open_server(backend);
    let receiver = Receiver::start().await;
    let made = make(&server.client(), &receiver.url("/a"), &LIFE).await;
    let thread = server.client().thread();

    thread
        .put("state", r#"{"n":9007199254740993,"a":[1.0]}"#)
        .ok()
        .await;
    thread.patch("", r#"{"metadata":{"m":1.0}}"#).ok().await;
    thread.delete("").ok().await;

    let got = receiver.await_accepted("/a", 2).await;
    assert_eq!(got[0].words(), expected_words("thread.created", &thread));
    assert_eq!(got[1].words(), expected_words("thread.destroyed", &thread));
    let text = String::from_utf8(got[1].body.to_vec()).unwrap();
    let expected_end =
        r#""reason":"destroyed","metadata":{"m":1.0},"state":{"a":[1.0],"n":9007199254740993}}}"#;
    assert!(text.ends_with(expected_end), "{text}");
    for delivery in &got {
        assert_eq!(delivery.header("content-type"), "application/json");
        assert!(delivery.header("user-agent").starts_with("threadkeep/"));
        assert_eq!(delivery.id(), delivery.json()["id"]);
        let sent: u64 = delivery.header("webhook-timestamp").parse().unwrap();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!(now.abs_diff(sent) < 60, "{sent}");
        assert_eq!(delivery.signed_by(&[made["secret"].as_str().unwrap()]), [0]);
    }
}

async fn an_expired_thread_is_delivered_with_its_state(backend: Backend) {
    let server = open_builder(backend)
        .set("THREADKEEP_THREAD_TTL_SECONDS", 1)
        .start();
    let receiver = Receiver::start().await;
    make(&server.client(), &receiver.url("/a"), &ENDS).await;
    let thread = server.client().thread();

    thread.put("state/k", "[1]").ok().await;

    let got = receiver.await_accepted("/a", 1).await;
    let about = &got[0].json()["data"];
    assert_eq!(about["reason"], "expired");
    assert_eq!(about["state"], json!({"k": [1]}));
}

async fn a_large_state_is_delivered_by_link(backend: Backend) {
    let server = open_builder(backend)
        .set("THREADKEEP_PUBLIC_URL", "https://t.example")
        .start();
    let receiver = Receiver::start().await;
    make(&server.client(), &receiver.url("/a"), &ENDS).await;
    let thread = server.client().thread();
    let large = format!("\"{}\"", "x".repeat(300_000));

    thread.put("state/k", &large).ok().await;
    thread.delete("").ok().await;

    let got = receiver.await_accepted("/a", 1).await;
    let about = &got[0].json()["data"];
    assert_eq!(about.get("state"), None);
    let url = about["state_url"].as_str().unwrap();
    let path = url.strip_prefix("https://t.example").unwrap();
    let archive = server.client().get(path).bearer(API_SECRET).ok().await;
    assert_eq!(
        archive.json()["state"]["k"].as_str().unwrap().len(),
        300_000
    );
}

async fn failed_deliveries_are_retried_in_order_with_the_same_id(backend: Backend) {
    let server = open_server(backend);
    let receiver = Receiver::start().await;
    make(&server.client(), &receiver.url("/a"), &LIFE).await;
    let thread = server.client().thread();

    receiver.set("/a", AnswerMode::Failing(503));
    thread.put("state/k", "1").ok().await;
    thread.delete("").ok().await;
    receiver.await_received("/a", 2).await;
    receiver.set("/a", AnswerMode::Accepting);

    let taken = receiver.await_accepted("/a", 2).await;
    assert_eq!(taken[0].words(), expected_words("thread.created", &thread));
    assert_eq!(
        taken[1].words(),
        expected_words("thread.destroyed", &thread)
    );
    let got = receiver.got("/a");
    let before = got.iter().take_while(|delivery| !delivery.is_taken);
    assert!(before.clone().count() >= 2);
    for failed in before {
        assert_eq!(failed.id(), taken[0].id());
        assert_eq!(failed.body, taken[0].body);
    }
}

async fn a_hanging_endpoint_delays_no_other(backend: Backend) {
    /// More threads than a replica can serve in parallel.
    const THREADS: usize = 40;
    let mut times = Vec::new();
    // retry, because a busy machine delays some attempts; a hanging delivery that blocked others would delay them all
    for _ in 0..5 {
        let server = open_server(backend);
        let receiver = Receiver::start().await;
        make(&server.client(), &receiver.url("/slow"), &LIFE).await;
        make(&server.client(), &receiver.url("/good"), &LIFE).await;
        receiver.set("/slow", AnswerMode::Hanging);

        let start = Instant::now();
        for _ in 0..THREADS {
            let thread = server.client().thread();
            thread.put("state/k", "1").ok().await;
            thread.delete("").ok().await;
        }
        receiver.await_accepted("/good", 2 * THREADS).await;

        times.push(start.elapsed());
        assert!(!receiver.got("/slow").is_empty());
        if start.elapsed() < Duration::from_secs(14) {
            return;
        }
    }
    panic!("{times:?}");
}

async fn a_redirect_is_not_followed(backend: Backend) {
    let server = open_server(backend);
    let receiver = Receiver::start().await;
    make(&server.client(), &receiver.url("/a"), &LIFE).await;
    receiver.set("/a", AnswerMode::Redirecting(receiver.url("/b")));

    server.client().thread().put("state/k", "1").ok().await;
    receiver.await_received("/a", 2).await;

    assert!(receiver.got("/b").is_empty());
}

async fn private_addresses_are_rejected_at_delivery(backend: Backend) {
    let server = Server::start(backend);
    let receiver = Receiver::start().await;
    let url = format!("http://localhost:{}/a", receiver.port());
    make(&server.client(), &url, &LIFE).await;

    server.client().thread().put("state/k", "1").ok().await;
    until(async || {
        let metrics = server.client().get("/metrics").ok().await.text();
        let failed = r#"threadkeep_deliveries_total{consumer="webhook",outcome="attempt_failed"} "#;
        let line = metrics.lines().find_map(|line| line.strip_prefix(failed));
        line.unwrap().parse::<u64>().unwrap() >= 2
    })
    .await;

    assert!(receiver.got("/a").is_empty());
}

async fn both_secrets_sign_during_a_rotation(backend: Backend) {
    let server = open_server(backend);
    let client = server.client();
    let receiver = Receiver::start().await;
    let made = make(&client, &receiver.url("/a"), &ENDS).await;
    let patch = hooks(&client, Method::PATCH, &path_of(&made)).json(r#"{"secret":null}"#);
    let rotated = patch.ok().await.json();

    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    thread.delete("").ok().await;

    let got = receiver.await_accepted("/a", 1).await;
    let secrets = [&made, &rotated].map(|endpoint| endpoint["secret"].as_str().unwrap());
    assert_eq!(got[0].signed_by(&secrets), [1, 0]);
}

async fn changes_to_an_endpoint_apply_to_later_events(backend: Backend) {
    let server = open_server(backend);
    let client = server.client();
    let receiver = Receiver::start().await;
    let made = make(&client, &receiver.url("/a"), &["session.completed"]).await;
    let patch = json!({"url": receiver.url("/b"), "events": LIFE}).to_string();
    let patch = hooks(&client, Method::PATCH, &path_of(&made)).json(&patch);
    patch.ok().await;

    // the server notices the change after a short delay
    until(async || {
        client.thread().put("state/k", "1").ok().await;
        !receiver.taken("/b").is_empty()
    })
    .await;
    hooks(&client, Method::DELETE, &path_of(&made)).ok().await;
    let received_before = receiver.got("/b").len();
    for _ in 0..20 {
        client.thread().put("state/k", "1").ok().await;
    }
    let other = make(&client, &receiver.url("/c"), &LIFE).await;
    client.thread().put("state/k", "1").ok().await;
    receiver.await_accepted("/c", 1).await;

    assert!(receiver.got("/a").is_empty());
    // deliveries that were in flight may still arrive
    assert!(receiver.got("/b").len() <= received_before + 16, "{other}");
}

async fn thread_changes_are_delivered_to_a_subscribed_endpoint(backend: Backend) {
    let server = open_server(backend);
    let client = server.client();
    let receiver = Receiver::start().await;
    make(&client, &receiver.url("/a"), &["thread.updated"]).await;
    let thread = client.thread();
    thread.put("state/k", "0").ok().await;

    // the server notices the new endpoint within seconds
    until(async || {
        thread.put("state/k", "1").ok().await;
        sleep(Duration::from_millis(50)).await;
        !receiver.taken("/a").is_empty()
    })
    .await;

    let event = receiver.taken("/a")[0].json();
    assert_eq!(event["type"], "thread.updated");
    assert_eq!(event["data"]["keys"], json!(["k"]));
}

async fn a_configured_endpoint_receives_deliveries(backend: Backend) {
    const SECRETS: [&str; 2] = [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_bmV2ZXJnb25uYWdpdmV5b3V1cG5ldmVyZ29ubmE=",
    ];
    let receiver = Receiver::start().await;
    let webhooks = format!("one {} thread.created", receiver.url("/a"));
    let secrets = format!("one:{},one:{}", SECRETS[0], SECRETS[1]);
    let server = open_builder(backend)
        .set("THREADKEEP_WEBHOOKS", webhooks)
        .set("THREADKEEP_WEBHOOK_SECRETS", secrets)
        .start();

    until(async || {
        server.client().thread().put("state/k", "1").ok().await;
        !receiver.taken("/a").is_empty()
    })
    .await;

    assert_eq!(receiver.taken("/a")[0].signed_by(&SECRETS), [0, 1]);
}

with_own_servers!(
    a_destroyed_thread_is_delivered_signed_with_its_state,
    an_expired_thread_is_delivered_with_its_state,
    a_large_state_is_delivered_by_link,
    failed_deliveries_are_retried_in_order_with_the_same_id,
    a_hanging_endpoint_delays_no_other,
    a_redirect_is_not_followed,
    private_addresses_are_rejected_at_delivery,
    both_secrets_sign_during_a_rotation,
    changes_to_an_endpoint_apply_to_later_events,
    thread_changes_are_delivered_to_a_subscribed_endpoint,
    a_configured_endpoint_receives_deliveries,
);
