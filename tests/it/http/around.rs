//! What stands around the threads: health, metrics, the description of the API.

use crate::support::server::{Backend, Server};

async fn the_process_says_that_it_is_up(server: &Server) {
    let answer = server.client().get("/healthz").send().await;

    assert_eq!(answer.status, 200);
}

async fn the_store_is_reported_to_answer(server: &Server) {
    let answer = server.client().get("/readyz").send().await;

    assert_eq!(answer.status, 200);
}

async fn it_stops_at_a_signal_and_exits_with_zero(backend: Backend) {
    let server = Server::start(backend);

    let status = server.stop();

    assert!(status.success(), "{status}");
}

over_both_stores!(
    the_process_says_that_it_is_up,
    the_store_is_reported_to_answer,
);
with_own_servers!(it_stops_at_a_signal_and_exits_with_zero);
