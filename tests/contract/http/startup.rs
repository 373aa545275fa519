use crate::support::client::{new_id, signature};
use crate::support::server::{Backend, SIGNING_SECRET, Server};

async fn without_a_signing_key_the_server_generates_one_and_warns(backend: Backend) {
    let builder = Server::builder(backend).unset("THREADKEEP_SIGNING_KEYS");
    let (one, other) = (builder.clone().start(), builder.start());

    let minted = one.client().get("/v1/threads/current").ok().await;

    let signed = minted.header("x-thread-id").unwrap();
    let read_thread = |server: &Server| {
        server
            .client()
            .get("/v1/threads/current")
            .header("x-thread-id", signed)
    };
    read_thread(&one).ok().await;
    read_thread(&other)
        .refused(401, "invalid_thread_signature")
        .await;
    one.await_log(|line| line.contains("WARN") && line.contains("key"));
}

async fn a_signed_id_outlives_the_process(backend: Backend) {
    let server = Server::start(backend);
    let minted = server.client().get("/v1/threads/current").ok().await;
    let settings = server.settings();
    server.kill();

    let server = settings.start();

    let signed = minted.header("x-thread-id").unwrap();
    let answer = server
        .client()
        .get("/v1/threads/current")
        .header("x-thread-id", signed)
        .ok()
        .await;
    assert_eq!(answer.header("x-thread-id"), Some(signed));
}

async fn a_signing_key_has_at_least_32_bytes(backend: Backend) {
    let short = "x".repeat(31);

    let (status, log) = Server::builder(backend)
        .set("THREADKEEP_LISTEN", "0.0.0.0:0")
        .set("THREADKEEP_SIGNING_KEYS", format_args!("main:{short}"))
        .start_refused();

    assert!(!status.success());
    assert!(!log.contains(&short), "{log}");
}

async fn without_api_keys_a_thread_opens_by_its_signed_id_alone(backend: Backend) {
    let server = Server::builder(backend)
        .unset("THREADKEEP_API_KEYS")
        .start();
    let client = server.client();
    let id = new_id();
    let path = format!("/v1/threads/{id}");

    client
        .get(&path)
        .header(
            "x-thread-id",
            format!("{id};{}", signature(SIGNING_SECRET, &id)),
        )
        .ok()
        .await;
    for (key, code) in [
        ("", "api_key_required"),
        ("ops", "invalid_api_key"),
        ("undefined", "invalid_api_key"),
    ] {
        client.get(&path).bearer(key).refused(401, code).await;
    }
}

async fn every_listed_api_key_is_accepted(backend: Backend) {
    let (first, second) = ("a".repeat(40), format!("{}:with-colon", "b".repeat(40)));
    let server = Server::builder(backend)
        .set(
            "THREADKEEP_API_KEYS",
            format_args!("one:{first},two:{second}"),
        )
        .start();

    for key in [&first, &second] {
        server
            .client()
            .get(&format!("/v1/threads/{}", new_id()))
            .bearer(key)
            .ok()
            .await;
    }
}

with_own_servers!(
    without_a_signing_key_the_server_generates_one_and_warns,
    a_signed_id_outlives_the_process,
    a_signing_key_has_at_least_32_bytes,
    without_api_keys_a_thread_opens_by_its_signed_id_alone,
    every_listed_api_key_is_accepted,
);
