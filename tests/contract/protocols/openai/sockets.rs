//! Tests responses over WebSockets. The test client and the server use different WebSocket libraries.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::Api;
use super::kinds::{KINDS, with_kinds};
use super::responses::{Events, with_models};
use crate::http::over_both_stores;
use crate::support::server::{API_SECRET, Server};
use crate::support::upstream::{Reply, Upstream};

/// Time limit for each message, long enough even on half a processor core.
const PATIENCE: Duration = Duration::from_secs(120);

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(server: &Server) -> Self {
        Self::with_key(server, API_SECRET).await.unwrap()
    }

    async fn with_key(server: &Server, key: &str) -> Result<Self, u16> {
        let address = server.address();
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}/v1/responses");
        let mut request = url.into_client_request().unwrap();
        let key = format!("Bearer {key}").parse().unwrap();
        request.headers_mut().insert("authorization", key);
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn send(&mut self, body: &Value) {
        self.send_text(body.to_string()).await;
    }

    async fn send_text(&mut self, text: String) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    async fn event(&mut self) -> Option<Value> {
        loop {
            let next = timeout(PATIENCE, self.0.next()).await.unwrap();
            match next?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await.expect("an end");
            let kind = event["type"].as_str().unwrap();
            let ends = ["completed", "incomplete", "failed"];
            let is_last =
                kind == "error" || ends.iter().any(|end| kind == format!("response.{end}"));
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    async fn ask(&mut self, body: Value) -> Value {
        self.send(&body).await;
        self.events().await.pop().unwrap()
    }
}

fn create_message(members: Value) -> Value {
    let mut body = json!({"type": "response.create", "model": "m", "store": false});
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body
}

fn text_of(ended: &Value) -> &str {
    let output = ended["response"]["output"].as_array().unwrap();
    output.last().unwrap()["content"][0]["text"]
        .as_str()
        .unwrap()
}

fn last_texts(upstream: &Upstream) -> Vec<String> {
    let body = upstream.requests().pop().unwrap().body;
    let messages = body["messages"].as_array().unwrap().iter();
    let text = |message: &Value| message["content"].as_str().unwrap_or("").to_owned();
    messages.map(text).collect()
}

async fn a_socket_has_the_events_of_a_stream_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let mut socket = Socket::open(&server).await;
    for kind in KINDS {
        upstream.script([(); 2].map(|()| Reply::text("One, two.").reasoning("Hm.")));
        let body = json!({"model": kind, "input": "Count.", "stream": true, "reasoning": {"effort": "low"}});
        let stream = Events::of(api.post("/responses", &body)).await.rest().await;

        let mut message = body.clone();
        message["type"] = json!("response.create");
        socket.send(&message).await;
        let events = socket.events().await;

        let types = |events: &[Value]| -> Vec<Value> {
            events.iter().map(|event| event["type"].clone()).collect()
        };
        assert_eq!(types(&events), types(&stream), "{kind}");
        let numbers = events
            .iter()
            .map(|event| event["sequence_number"].as_u64().unwrap());
        assert!(numbers.eq(0..events.len() as u64));
        let id = events[0]["response"]["id"].as_str().unwrap();
        let stored = api.ask(reqwest::Method::GET, &format!("/responses/{id}"));
        assert_eq!(stored.ok().await.json(), events.last().unwrap()["response"]);
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn messages_are_answered_in_order(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    // more messages than the server queues per socket
    let count = 12;
    upstream.script((0..count).map(|number| Reply::text(number.to_string())));

    for _ in 0..count {
        socket
            .send(&create_message(json!({"input": "Next."})))
            .await;
    }

    for number in 0..count {
        let ended = socket.events().await.pop().unwrap();
        assert_eq!(text_of(&ended), number.to_string());
    }
}

async fn an_unstored_response_can_be_continued_only_on_its_socket(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    upstream.script(["Yes.", "Cobalt.", "Still cobalt.", "New."].map(Reply::text));

    let first = socket
        .ask(create_message(json!({"input": "It is cobalt."})))
        .await;
    let after = |previous: &Value, input: &str| {
        create_message(json!({"input": input, "previous_response_id": previous["response"]["id"]}))
    };
    let second = socket.ask(after(&first, "What is it?")).await;
    let input = json!([{"role": "user", "content": "Sure?"}]);
    let third =
        create_message(json!({"input": input, "previous_response_id": second["response"]["id"]}));
    let third = socket.ask(third).await;

    assert_eq!(text_of(&third), "Still cobalt.");
    assert_eq!(
        third["response"]["previous_response_id"],
        second["response"]["id"]
    );
    let all = ["It is cobalt.", "Yes.", "What is it?", "Cobalt.", "Sure?"];
    assert_eq!(last_texts(&upstream), all);
    // an unstored response is available only on its own socket, and only while it is the latest response
    for (mut socket, previous) in [(Socket::open(&server).await, &third), (socket, &first)] {
        let refused = socket.ask(after(previous, "And now?")).await;
        assert_eq!(refused["type"], "error");
        assert_eq!(
            refused["error"]["code"], "previous_response_not_found",
            "{refused}"
        );
        assert_eq!(refused["error"]["param"], "previous_response_id");
        // a client would now send the whole input again
        if std::ptr::eq(previous, &first) {
            let again = socket
                .ask(create_message(json!({"input": "All of it."})))
                .await;
            assert_eq!(text_of(&again), "New.");
        }
    }
    assert_eq!(upstream.count(), 4);
}

async fn a_failure_leaves_nothing_to_continue(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    let output = json!([{"type": "function_call_output", "call_id": "missing", "output": "x"}]);
    for fails in [json!({"input": output}), json!({"input": "Fail."})] {
        upstream.script([Reply::text("Yes."), Reply::status(500)]);
        let first = socket.ask(create_message(json!({"input": "Hi."}))).await;
        let previous = &first["response"]["id"];
        let mut fails = create_message(fails);
        fails["previous_response_id"] = previous.clone();

        let failed = socket.ask(fails).await;
        let again = create_message(json!({"input": "Again.", "previous_response_id": previous}));
        let again = socket.ask(again).await;

        assert_ne!(failed["type"], "response.completed", "{failed}");
        assert_eq!(
            again["error"]["code"], "previous_response_not_found",
            "{again}"
        );
    }
}

async fn a_stored_response_can_be_continued_on_any_socket(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    upstream.script(["One.", "Two."].map(Reply::text));
    let stored = json!({"type": "response.create", "model": "m", "input": "1"});

    let first = Socket::open(&server).await.ask(stored.clone()).await;
    let mut after = stored;
    after["previous_response_id"] = first["response"]["id"].clone();
    let second = Socket::open(&server).await.ask(after).await;

    assert_eq!(last_texts(&upstream), ["1", "One.", "1"]);
    assert_eq!(
        second["response"]["conversation"],
        first["response"]["conversation"]
    );
    // unstored responses can also continue the stored response
    upstream.script(["Three.", "Four."].map(Reply::text));
    let mut socket = Socket::open(&server).await;
    let mut previous = second["response"]["id"].clone();
    for input in ["3", "4"] {
        let body = create_message(json!({"input": input, "previous_response_id": previous}));
        previous = socket.ask(body).await["response"]["id"].clone();
    }
    let all = ["1", "One.", "1", "Two.", "3", "Three.", "4"];
    assert_eq!(last_texts(&upstream), all);
}

async fn a_warm_up_can_be_continued_without_an_answer(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    let tools = json!([{"type": "function", "name": "look"}]);
    let warm_up = |members: Value| {
        let mut body = members;
        body["type"] = json!("response.create");
        body["model"] = json!("m");
        body["generate"] = json!(false);
        body
    };

    let body = warm_up(json!({"input": "1", "instructions": "Be brief.", "tools": tools}));
    socket.send(&body).await;
    let events = socket.events().await;

    let shown = |event: &Value| {
        let (kind, number) = (&event["type"], &event["sequence_number"]);
        json!([kind, number, event["response"]["status"]])
    };
    let shown: Vec<_> = events.iter().map(shown).collect();
    let expected = [
        json!(["response.created", 0, "in_progress"]),
        json!(["response.in_progress", 1, "in_progress"]),
        json!(["response.completed", 2, "completed"]),
    ];
    assert_eq!(shown, expected);
    let warm = &events[2]["response"];
    assert_eq!(
        [&warm["output"], &warm["store"]],
        [&json!([]), &json!(false)]
    );
    assert_eq!(
        [&warm["instructions"], &warm["tools"][0]["name"]],
        ["Be brief.", "look"]
    );
    assert_eq!(warm["usage"]["total_tokens"], 0);
    assert_eq!(upstream.requests().len(), 0);

    // a second warm-up, which adds no items
    let body = warm_up(json!({"previous_response_id": warm["id"], "tools": tools}));
    let second = socket.ask(body).await["response"].clone();
    assert_eq!(second["previous_response_id"], warm["id"]);
    upstream.script([
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
    ]);
    let first = socket
        .ask(create_message(
            json!({"previous_response_id": second["id"], "input": "2"}),
        ))
        .await;
    assert_eq!(text_of(&first), "One.");
    assert_eq!(first["response"]["previous_response_id"], second["id"]);
    assert_eq!(last_texts(&upstream), ["1", "2"]);

    // stored and unstored responses can continue each other
    let stored = json!({"type": "response.create", "model": "m", "input": "3"});
    let stored = socket.ask(stored).await["response"]["id"].clone();
    let warm = warm_up(json!({"previous_response_id": stored, "input": "4"}));
    let warm = socket.ask(warm).await["response"].clone();
    assert_eq!(warm["conversation"], Value::Null);
    let body = json!({"type": "response.create", "model": "m", "previous_response_id": warm["id"], "input": "5"});
    let last = socket.ask(body).await["response"].clone();
    assert_eq!(last_texts(&upstream), ["3", "Two.", "4", "5"]);
    let path = format!("/responses/{}", last["id"].as_str().unwrap());
    let api = Api::of(&server);
    let read = api.ask(reqwest::Method::GET, &path).ok().await.json();
    assert_eq!(read["output"], last["output"]);

    // a warm-up is not available on a different socket
    let body = create_message(json!({"previous_response_id": warm["id"], "input": "6"}));
    let error = Socket::open(&server).await.ask(body).await;
    assert_eq!(error["error"]["code"], "previous_response_not_found");
}

async fn an_invalid_message_is_an_error_and_the_socket_stays_open(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    upstream.script([Reply::text("Fine.")]);

    for (text, code, param) in [
        ("{", "invalid_json", Value::Null),
        (
            r#"{"type":"session.update"}"#,
            "invalid_value",
            json!("type"),
        ),
        (
            r#"{"model":"m","input":"x"}"#,
            "invalid_value",
            json!("type"),
        ),
        (
            r#"{"type":"response.create","model":"m","input":"x","generate":"no"}"#,
            "invalid_type",
            json!("generate"),
        ),
        (
            r#"{"type":"response.create","model":"m","input":"x","generate":false,"conversation":"c"}"#,
            "invalid_value",
            json!("generate"),
        ),
        (
            r#"{"type":"response.create","model":"other","input":"x","generate":false}"#,
            "model_not_found",
            json!("model"),
        ),
        (
            r#"{"type":"response.create","model":"m","generate":false,"previous_response_id":"resp_of_nobody"}"#,
            "previous_response_not_found",
            json!("previous_response_id"),
        ),
        (
            r#"{"type":"response.create","model":"other","input":"x"}"#,
            "model_not_found",
            json!("model"),
        ),
    ] {
        socket.send_text(text.to_owned()).await;
        let error = socket.event().await.unwrap();
        assert_eq!(error["type"], "error");
        assert_eq!(
            (&error["error"]["code"], &error["error"]["param"]),
            (&json!(code), &param)
        );
        assert!(error["status"].as_u64() >= Some(400));
    }
    socket
        .0
        .send(Message::binary(vec![0xff, 0xfe]))
        .await
        .unwrap();
    assert_eq!(
        socket.event().await.unwrap()["error"]["code"],
        "invalid_json"
    );
    let fine = socket.ask(create_message(json!({"input": "x"}))).await;
    assert_eq!(text_of(&fine), "Fine.");
    // one byte over the maximum message size
    socket.send_text("x".repeat(8 * 1_048_576 + 1)).await;
    assert_eq!(socket.event().await, None);
}

async fn a_response_continues_without_its_socket(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    let gate = crate::support::upstream::Gate::new();
    upstream.script([Reply::text("It ends.").held_after(1, &gate)]);
    let body = json!({"type": "response.create", "model": "m", "input": "Go."});

    socket.send(&body).await;
    let created = socket.event().await.unwrap();
    gate.waiting(1).await;
    drop(socket);
    gate.open();

    let id = created["response"]["id"].as_str().unwrap();
    let api = Api::of(&server);
    let path = format!("/responses/{id}?stream=true");
    let events = Events::of(api.ask(reqwest::Method::GET, &path))
        .await
        .rest()
        .await;
    assert_eq!(events.last().unwrap()["type"], "response.completed");
}

async fn a_socket_needs_a_key_with_write_rights(server: &Server) {
    let upstream = Upstream::start().await;
    let (reads, writes) = ("r".repeat(40), "w".repeat(40));
    let server = with_models(server, &upstream)
        .set(
            "THREADKEEP_API_KEYS",
            format!("reads:{reads},writes:{writes}"),
        )
        .set(
            "THREADKEEP_API_KEY_RIGHTS",
            "reads:threads.read,writes:threads",
        )
        .start();

    assert_eq!(Socket::with_key(&server, &reads).await.err(), Some(403));
    assert_eq!(Socket::with_key(&server, "nobody's").await.err(), Some(401));
    assert!(Socket::with_key(&server, &writes).await.is_ok());
    let client = server.client();
    let plain = client
        .get("/v1/responses")
        .header("authorization", format!("Bearer {writes}"));
    assert_eq!(plain.send().await.status, 405);
}

async fn a_stopping_server_closes_its_sockets(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut socket = Socket::open(&server).await;
    upstream.script([Reply::text("Yes.")]);
    socket.ask(create_message(json!({"input": "There?"}))).await;

    let stopped = tokio::task::spawn_blocking(move || server.stop());

    assert_eq!(socket.event().await, None);
    assert!(stopped.await.unwrap().success());
}

over_both_stores! {
    a_socket_has_the_events_of_a_stream_with_each_upstream_kind,
    messages_are_answered_in_order,
    an_unstored_response_can_be_continued_only_on_its_socket,
    a_failure_leaves_nothing_to_continue,
    a_stored_response_can_be_continued_on_any_socket,
    a_warm_up_can_be_continued_without_an_answer,
    an_invalid_message_is_an_error_and_the_socket_stays_open,
    a_response_continues_without_its_socket,
    a_socket_needs_a_key_with_write_rights,
    a_stopping_server_closes_its_sockets,
}
