use crate::http::with_own_servers;
use crate::support::agentuity_socket::{Socket, about, push};
use crate::support::client::new_id;
use crate::support::server::{Backend, Server};

async fn messages_are_limited_per_thread(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_RATE_WRITES", "1/1d")
        .set("THREADKEEP_RATE_NEW_THREADS", "1/1d")
        .set("THREADKEEP_RATE_THREAD_WRITES", "3/1d")
        .start();
    let mut socket = Socket::open(&server).await;
    let thread = new_id();
    socket.save(&thread, r#"{"list":[0]}"#).await;
    socket.restore(&thread).await;
    // this save reads the stored array before writing it, but still counts as one write
    socket.save(&thread, r#"{"list":[0,1]}"#).await;
    socket.ok("merge", &push(&thread, 2)).await;

    let merge = socket.refused("merge", &push(&thread, 3)).await;
    let delete = socket.refused("delete", &about(&thread, &[])).await;

    for text in [merge, delete] {
        assert!(
            text.starts_with("rate limit `rate_thread_writes` exceeded"),
            "{text}"
        );
    }
    let state = socket.restore(&thread).await.unwrap();
    assert!(state.contains("[0,1,2]"), "{state}");
    socket.save(&new_id(), "{}").await;
}

with_own_servers!(messages_are_limited_per_thread);
