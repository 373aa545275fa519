use tokio::task::spawn_blocking;

use crate::http::{over_both_stores, with_own_servers};
use crate::support::agentuity_socket::{FIN, Socket, push};
use crate::support::client::new_id;
use crate::support::server::{Backend, Server};
use crate::support::until;

const GOING_AWAY: u16 = 1001;

async fn a_stopping_server_closes_its_sockets_with_going_away(backend: Backend) {
    // the test fails long before this shutdown limit expires
    let server = Server::builder(backend)
        .set("THREADKEEP_SHUTDOWN_SECONDS", 600)
        .start();
    let mut socket = Socket::open(&server).await;
    let mut silent = Socket::connect(server.address()).await;
    socket.save(&new_id(), "{}").await;

    let stopping = spawn_blocking(move || server.stop());

    assert_eq!(socket.closed().await, GOING_AWAY);
    assert_eq!(silent.closed().await, GOING_AWAY);
    // exit code 0 shows that the server stopped before the shutdown limit
    assert_eq!(stopping.await.unwrap().code(), Some(0));
}

async fn requests_sent_before_a_disconnect_are_executed(server: &Server) {
    const MERGES: usize = 100;
    let id = new_id();
    let thread = server.client().thread_of(&id);

    for round in 1..=2 {
        let mut socket = Socket::open(server).await;
        for number in 0..MERGES {
            socket.request("1", "merge", &push(&id, number)).await;
        }
        match round {
            1 => socket.hang_up().await,
            _ => socket.send_frame(FIN | 8, &1_000_u16.to_be_bytes()).await,
        }

        let is_done = async || {
            let list = thread.get("state/list").send().await;
            list.status == 200 && list.json().as_array().unwrap().len() == round * MERGES
        };
        until(is_done).await;
    }
}

over_both_stores!(requests_sent_before_a_disconnect_are_executed);

with_own_servers!(a_stopping_server_closes_its_sockets_with_going_away);
