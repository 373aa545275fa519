//! Tests the time limits of Agentuity's WebSockets. The server runs in this process, and each test sets its own limits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer};
use threadkeep_events::{EventSettings, Events};
use threadkeep_protocols::agentuity::{Agentuity, SocketCounters, SocketTiming};
use threadkeep_webhooks::WebhookSettings;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::conformance::room::{Room, memory};
use crate::support::agentuity_socket::{FIN, Socket, TEXT, about, frame, request};
use crate::support::client::new_id;
use crate::support::{unless_paused, until};

const POLICY: u16 = 1008;
const SECRET: &str = "secret";
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(600);

const TIMING: SocketTiming = SocketTiming {
    authentication: LONG,
    ping: LONG,
    silence: LONG,
    stuck: LONG,
    ..SocketTiming::DEFAULT
};

struct Local {
    address: SocketAddr,
    counters: Arc<SocketCounters>,
    server: ServerHandle,
    room: Room,
}

impl Local {
    fn start(timing: SocketTiming) -> Self {
        let room = memory();
        let events = Events::start(Arc::clone(&room.backend), EventSettings::default());
        let api = room.api(events, WebhookSettings::default());
        let protocol = Agentuity {
            timing,
            ..Agentuity::new(&api, Arc::default())
        };
        let counters = Arc::clone(&protocol.counters);
        let server =
            HttpServer::new(move || App::new().configure(|config| protocol.configure(config)))
                .workers(1)
                .disable_signals()
                // these two limits apply to HTTP requests, not to WebSockets
                .keep_alive(10 * SHORT)
                .client_request_timeout(20 * SHORT)
                .bind("127.0.0.1:0")
                .unwrap();
        let address = server.addrs()[0];
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Self {
            address,
            counters,
            server: handle,
            room,
        }
    }

    async fn state(&self, id: &str) -> String {
        let (threads, _) = self.room.services();
        let found = threads.get_state(&id.parse().unwrap()).await.unwrap();
        String::from_utf8(found.content.to_vec()).unwrap()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

#[tokio::test]
async fn an_unauthenticated_socket_is_closed_without_a_message_at_the_deadline() {
    let local = Local::start(SocketTiming {
        authentication: SHORT,
        ..TIMING
    });
    let mut socket = Socket::connect(local.address).await;

    // the server does not send `"success":false`, because the client would then never reconnect
    assert_eq!(socket.closed().await, POLICY);
}

#[tokio::test]
async fn an_idle_client_is_pinged_and_stays_connected_while_it_answers() {
    unless_paused(5 * SHORT, async || {
        let local = Local::start(SocketTiming {
            ping: SHORT,
            silence: 20 * SHORT,
            ..TIMING
        });
        let mut socket = Socket::open_at(local.address, SECRET).await;

        for _ in 0..25 {
            // the WebSocket library answers each ping
            let message = socket.next().await;
            assert!(matches!(message, Some(Message::Ping(_))), "{message:?}");
        }

        assert_eq!(socket.restore(&new_id()).await, None);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_disconnected() {
    unless_paused(2 * SHORT, async || {
        let local = Local::start(SocketTiming {
            ping: SHORT,
            silence: 10 * SHORT,
            ..TIMING
        });
        let socket = Socket::open_at(local.address, SECRET).await;
        assert_eq!(local.counters.open.get(), 1);

        let received = socket.bytes().await;

        let reason = b"the client was silent for too long";
        assert!(received.starts_with(&[FIN | 9, 8]), "a ping: {received:?}");
        let code = POLICY.to_be_bytes();
        let last = [&[FIN | 8, 36], &code[..], reason].concat();
        assert!(received.ends_with(&last), "a close: {received:?}");
        until(async || local.counters.open.get() == 0).await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_stops_reading_is_disconnected_but_its_requests_still_run() {
    let local = Local::start(SocketTiming {
        stuck: SHORT,
        ..TIMING
    });
    let (mut socket, id) = (Socket::open_at(local.address, SECRET).await, new_id());
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000_000));
    socket.save(&id, &large).await;

    // request more state than fits into the socket buffers, and then send a write
    let restore = request("1", "restore", &about(&id, &[]));
    let set = r#"[{"op":"set","key":"a","value":1}]"#;
    let merge = request("2", "merge", &about(&id, &[("operations", set)]));
    let mut frames = frame(FIN | TEXT, restore.as_bytes()).repeat(25);
    frames.extend(frame(FIN | TEXT, merge.as_bytes()));
    socket.send_bytes(&frames).await;
    until(async || local.counters.open.get() == 0).await;

    assert_eq!(local.state(&id).await, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_client_that_reads_slowly_stays_connected() {
    unless_paused(5 * SHORT, async || {
        let local = Local::start(SocketTiming {
            stuck: 20 * SHORT,
            ..TIMING
        });
        let (mut socket, id) = (Socket::open_at(local.address, SECRET).await, new_id());
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000_000));
        socket.save(&id, &large).await;

        for _ in 0..20 {
            socket.request("1", "restore", &about(&id, &[])).await;
        }
        for _ in 0..20 {
            sleep(2 * SHORT).await;
            assert_eq!(socket.answer().await["success"], true);
        }
    })
    .await;
}

async fn saved(local: &Local) -> (Socket, String) {
    let (mut socket, id) = (Socket::open_at(local.address, SECRET).await, new_id());
    socket.save(&id, r#"{"a":1,"b":2}"#).await;
    (socket, id)
}

fn save(id: &str) -> String {
    about(id, &[("user_data", r#""{\"state\":{\"a\":3}}""#)])
}

const IMPATIENT: SocketTiming = SocketTiming {
    ping: SHORT,
    client_timeout: Duration::from_millis(1_500),
    ..TIMING
};

#[tokio::test]
async fn a_save_is_compared_with_the_state_that_its_client_acknowledged() {
    unless_paused(2 * SHORT, async || {
        let local = Local::start(IMPATIENT);
        let (mut socket, id) = saved(&local).await;

        socket.restore(&id).await;
        // once this second call returns, the client has acknowledged the first state
        socket.restore(&new_id()).await;
        sleep(2 * IMPATIENT.client_timeout).await;
        socket.save(&id, r#"{"a":3}"#).await;

        assert_eq!(local.counters.bases.latest.get(), 1);
        assert_eq!(local.state(&id).await, r#"{"a":3}"#);
    })
    .await;
}

#[tokio::test]
async fn a_save_is_not_compared_with_an_unacknowledged_state() {
    let local = Local::start(IMPATIENT);
    let (mut socket, id) = saved(&local).await;

    // the client is not reading, so it does not answer pings
    socket.request("1", "restore", &about(&id, &[])).await;
    until(async || local.counters.restore.done.get() == 1).await;
    sleep(2 * IMPATIENT.client_timeout).await;
    socket.request("2", "save", &save(&id)).await;
    until(async || local.counters.save.done.get() == 2).await;

    assert_eq!(local.state(&id).await, r#"{"a":3,"b":2}"#);
}

#[tokio::test]
async fn a_save_is_not_compared_with_a_state_that_may_have_been_requested_long_ago() {
    let local = Local::start(IMPATIENT);
    let (mut socket, id) = saved(&local).await;

    // the server must assume that the client sent this request long ago and has stopped waiting for the state
    sleep(2 * IMPATIENT.client_timeout).await;
    socket.request("1", "restore", &about(&id, &[])).await;
    socket.request("2", "save", &save(&id)).await;
    until(async || local.counters.save.done.get() == 2).await;

    assert_eq!(local.state(&id).await, r#"{"a":3,"b":2}"#);
}
