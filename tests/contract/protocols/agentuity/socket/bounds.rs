use crate::support::agentuity_socket::{Socket, about};
use crate::support::client::new_id;
use crate::support::server::{Backend, Server};

pub(super) const MIB: usize = 1_048_576;

pub(super) async fn resident_bytes(server: &Server) -> usize {
    let page = server.client().get("/metrics").ok().await.text();
    let name = "process_resident_memory_bytes ";
    let bytes = page.lines().find_map(|line| line.strip_prefix(name));
    bytes.unwrap().parse::<f64>().unwrap() as usize
}

#[tokio::test]
async fn a_client_that_does_not_read_uses_bounded_memory() {
    const REQUESTS: usize = 300;
    let server = Server::start(Backend::Memory);
    let (mut socket, id) = (Socket::open(&server).await, new_id());
    socket
        .save(&id, &format!(r#"{{"a":"{}"}}"#, "x".repeat(200_000)))
        .await;
    socket.restore(&id).await;
    let before = resident_bytes(&server).await;

    for number in 0..REQUESTS {
        socket
            .request(&number.to_string(), "restore", &about(&id, &[]))
            .await;
    }
    // other sockets of the same worker are still served
    let mut others = [Socket::open(&server).await, Socket::open(&server).await];
    for other in &mut others {
        assert!(other.restore(&id).await.is_some());
    }
    let meanwhile = resident_bytes(&server).await;

    // the server buffers only 128 answers and those of requests in flight, but not all answers, which take 60 MB
    let more = meanwhile.saturating_sub(before);
    assert!(more < 45 * MIB, "{more}");
    for _ in 0..REQUESTS {
        let answer = socket.answer().await;
        assert_eq!(answer["success"], true);
        assert!(answer["data"].as_str().unwrap().len() > 200_000);
    }
}
