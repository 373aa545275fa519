use tokio::net::TcpStream;
use tokio::task::spawn_blocking;

use super::{Server, address, url};
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis;
use crate::support::server::Backend;
use crate::support::until;

#[tokio::test]
async fn a_draining_server_serves_requests_but_is_not_ready() {
    let server = Server::builder(Backend::Memory)
        .set("THREADKEEP_DRAIN_SECONDS", 3600)
        .start();
    let thread = server.client().thread();
    server.client().get("/readyz").ok().await;

    server.signal("TERM");

    until(async || server.client().get("/readyz").send().await.status == 503).await;
    let answer = server.client().get("/readyz").send().await;
    answer.problem(503, "shutting_down");
    thread.put("state/k", "1").ok().await;
    server.client().get("/healthz").ok().await;
}

#[tokio::test]
async fn a_request_in_flight_at_sigterm_is_finished() {
    let redis = redis::shared();
    let proxy = Proxy::start(address(&redis));
    let server = Server::builder(Backend::Memory)
        .redis(&url(proxy.address()))
        .set("THREADKEEP_STORE_TIMEOUT_MS", 60_000)
        .start();
    let address = server.address();
    let thread = server.client().thread();
    thread.put("state/k", "[1]").ok().await;

    proxy.set(Mode::Hanging);
    let running = tokio::spawn(thread.post("state/k/push", "2").send());
    // wait until the proxy is holding this request, not just background work
    until(async || proxy.is_holding(&thread.id)).await;
    server.signal("TERM");
    until(async || TcpStream::connect(address).await.is_err()).await;
    assert!(!running.is_finished());
    proxy.set(Mode::Open);

    let answer = running.await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["length"], 2);
    let status = spawn_blocking(move || server.stop()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}
