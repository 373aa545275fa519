use std::net::SocketAddr;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::client::OwnThread;
use crate::support::raw;
use crate::support::server::{Backend, Server};

const STATE_BYTES: usize = 1_048_576;
const BODY_BYTES: usize = 2_097_152;

/// Returns a thread whose state is `{"k":"xx...","n":9}`, with `size` bytes.
async fn filled(server: &Server, size: usize) -> OwnThread {
    let thread = server.client().thread();
    let text = "x".repeat(size - r#"{"k":"","n":9}"#.len());
    let answer = thread
        .put("state", &format!(r#"{{"k":"{text}","n":9}}"#))
        .ok()
        .await;
    assert_eq!(answer.json()["size_bytes"], size);
    thread
}

async fn a_state_may_be_full_to_the_byte(server: &Server) {
    let thread = filled(server, STATE_BYTES).await;

    let state = thread.get("state").ok().await;

    assert_eq!(state.body.len(), STATE_BYTES);
    let object = thread.object().await;
    assert_eq!(object["size_bytes"], STATE_BYTES);
    assert_eq!(object["limit_bytes"], STATE_BYTES);
}

async fn a_write_over_the_limit_is_refused_and_changes_nothing(server: &Server) {
    let thread = filled(server, STATE_BYTES).await;
    let before = thread.get("state").ok().await;
    let too_long = "x".repeat(STATE_BYTES - r#"{"k":""}"#.len() + 1);

    for (request, attempted) in [
        (thread.put("state/n", "10"), STATE_BYTES + 1),
        (thread.put("state/m", "1"), STATE_BYTES + 6),
        (thread.post("state/n/increment", "{}"), STATE_BYTES + 1),
        (thread.post("state/a/push", "1"), STATE_BYTES + 8),
        (thread.merge_patch(r#"{"n":12}"#), STATE_BYTES + 1),
        (
            thread.merge(r#"[{"op":"set","key":"n","value":123}]"#),
            STATE_BYTES + 2,
        ),
        (
            thread.put("state", &format!(r#"{{"k":"{too_long}"}}"#)),
            STATE_BYTES + 1,
        ),
    ] {
        let problem = request.refused(413, "state_too_large").await;

        assert_eq!(problem["limit_bytes"], STATE_BYTES);
        assert_eq!(problem["size_bytes"], STATE_BYTES);
        assert_eq!(problem["attempted_bytes"], attempted);
    }
    let after = thread.get("state").ok().await;
    assert_eq!(after.body, before.body);
    assert_eq!(after.etag(), before.etag());
}

async fn white_space_does_not_count(server: &Server) {
    let thread = server.client().thread();
    let text = "x".repeat(STATE_BYTES - r#"{"k":""}"#.len());
    let spaced = format!("  {{\n\t\"k\" : \"{text}\"  }}  ");

    let answer = thread.put("state", &spaced).ok().await;

    assert_eq!(answer.json()["size_bytes"], STATE_BYTES);
}

async fn a_limit_applies_to_the_result_of_a_whole_write(server: &Server) {
    let thread = filled(server, STATE_BYTES).await;

    let answer = thread
        .merge(
            r#"[{"op":"set","key":"more","value":"too much for a moment"},
                {"op":"delete","key":"k"}]"#,
        )
        .ok()
        .await;

    let state = r#"{"more":"too much for a moment","n":9}"#;
    assert_eq!(answer.json()["size_bytes"], state.len());
    assert_eq!(thread.state().await, state);
}

async fn a_push_fits_when_its_window_drops_elements(server: &Server) {
    let thread = server.client().thread();
    let record = format!("\"{}\"", "x".repeat(300_000));
    for _ in 0..3 {
        thread.post("state/a/push", &record).ok().await;
    }

    let problem = thread
        .post("state/a/push", &record)
        .refused(413, "state_too_large")
        .await;
    let answer = thread
        .post("state/a/push?max_records=3", &record)
        .ok()
        .await;

    assert_eq!(
        problem["attempted_bytes"],
        r#"{"a":[]}"#.len() + 4 * record.len() + 3
    );
    assert_eq!(answer.json()["length"], 3);
}

fn keys(count: usize) -> String {
    let members: Vec<_> = (0..count).map(|n| format!(r#""k{n}":1"#)).collect();
    format!("{{{}}}", members.join(","))
}

async fn a_state_has_at_most_10000_keys(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", &keys(10_000)).ok().await;

    for request in [
        thread.put("state/more", "1"),
        thread.put("state", &keys(10_001)),
        thread.post("state/more/push", "1"),
        thread.post("state/more/increment", "{}"),
        thread.merge_patch(r#"{"k1":2,"more":1}"#),
        thread.merge(r#"[{"op":"delete","key":"absent"},{"op":"set","key":"more","value":1}]"#),
    ] {
        let problem = request.refused(413, "too_many_keys").await;

        assert_eq!(problem["limit_keys"], 10_000);
    }
    thread
        .merge(r#"[{"op":"set","key":"more","value":1},{"op":"delete","key":"k0"}]"#)
        .ok()
        .await;
    assert_eq!(thread.object().await["keys"], 10_000);
}

async fn the_number_of_keys_is_a_setting(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_MAX_KEYS", 3)
        .start();
    let thread = server.client().thread();
    thread.put("state", &keys(3)).ok().await;

    let problem = thread
        .put("state/more", "1")
        .refused(413, "too_many_keys")
        .await;
    thread.put("state/k0", "2").ok().await;

    assert_eq!(problem["limit_keys"], 3);
}

async fn a_body_has_at_most_two_mebibytes(server: &Server) {
    let thread = server.client().thread();
    let body = |size: usize| format!("{}1", " ".repeat(size - 1));

    thread.put("state/k", &body(BODY_BYTES)).ok().await;
    thread
        .put("state/k", &body(BODY_BYTES + 1))
        .refused(413, "body_too_large")
        .await;

    assert_eq!(thread.state().await, r#"{"k":1}"#);
    assert_eq!(thread.object().await["version"], 1);
}

fn head(thread: &OwnThread, path: &str, headers: &str) -> String {
    format!(
        "PUT /v1/threads/current/{path} HTTP/1.1\r\nhost: x\r\nx-thread-id: {}\r\n{headers}\r\n",
        thread.signed
    )
}

async fn send_all_then_read(address: SocketAddr, head: &str, body_bytes: usize) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = vec![b' '; 65_536];
    for _ in 0..body_bytes / chunk.len() {
        // the server may stop reading early, and the client must still receive the answer
        if stream.write_all(&chunk).await.is_err() {
            break;
        }
    }
    raw::read_response(&mut stream).await
}

async fn a_client_that_is_still_sending_can_read_its_refusal(server: &Server) {
    let thread = server.client().thread();
    let size = 16 * BODY_BYTES;
    let length = format!("content-length: {size}\r\n");
    let forged = head(&thread, "state/k", &length).replace("thrd_", "thrd_0");

    for (head, status, code) in [
        (head(&thread, "state/k", &length), 413, "body_too_large"),
        (forged, 401, "invalid_thread_signature"),
        (head(&thread, "nowhere", &length), 404, "not_found"),
        (head(&thread, "keys", &length), 405, "method_not_allowed"),
    ] {
        let answer = send_all_then_read(server.address(), &head, size).await;

        assert_eq!(raw::status(&answer), status, "{answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn a_large_body_without_access_is_refused_like_a_small_one(server: &Server) {
    let thread = server.client().thread();
    let wrong = thread.signed.replace("thrd_", "thrd_0");
    let path = |path: &str, headers: &str| format!("{path} HTTP/1.1\r\nhost: x\r\n{headers}");
    let by_id = format!("PUT /v1/threads/{}/state", thread.id);
    let forged = format!("x-thread-id: {wrong}\r\n");
    let bearer = "authorization: Bearer wrong\r\n";
    let signature = "invalid_thread_signature";
    for (head, code) in [
        (path("PUT /v1/kv/n/k", ""), "api_key_required"),
        (path("PUT /v1/kv/n/k", bearer), "invalid_api_key"),
        (path("POST /v1/webhooks", ""), "api_key_required"),
        (path(&by_id, ""), "api_key_required"),
        (path(&by_id, bearer), "invalid_api_key"),
        (path(&by_id, &forged), "api_key_required"),
        (path("PUT /v1/threads/current/state", &forged), signature),
        (path("POST /mcp", ""), "api_key_required"),
    ] {
        for size in [65_536, BODY_BYTES, 4 * BODY_BYTES] {
            let head = format!("{head}content-length: {size}\r\n\r\n");

            let answer = send_all_then_read(server.address(), &head, size).await;

            assert_eq!(raw::status(&answer), 401, "{head}: {answer}");
            assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
        }
    }
    let relay = path("POST /api/v1/sessions", "content-length: 65536\r\n\r\n");
    let answer = send_all_then_read(server.address(), &relay, 65_536).await;
    assert_eq!(raw::status(&answer), 401, "{answer}");
}

async fn a_huge_content_length_is_refused_before_the_body(server: &Server) {
    let thread = server.client().thread();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = head(&thread, "state/k", "content-length: 1000000000000\r\n");

    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = raw::read_response(&mut stream).await;

    assert_eq!(raw::status(&answer), 413, "{answer}");
    assert!(answer.contains("\"code\":\"body_too_large\""), "{answer}");
}

async fn with_headers(server: &Server, path: &str, count: usize, bytes: usize) -> String {
    let headers: String = (0..count)
        .map(|number| format!("x-{number:04}: {}\r\n", "v".repeat(bytes)))
        .collect();
    let close = "host: x\r\nconnection: close\r\n";
    let request = format!("GET {path} HTTP/1.1\r\n{close}{headers}\r\n");
    raw::exchange(server.address(), request).await
}

async fn a_head_that_is_too_large_has_its_own_error_code(server: &Server) {
    let own = "/v1/threads/current";
    let long = format!("{own}?key={}", "k".repeat(16_384));
    for (path, status, code, count, bytes) in [
        (own, 431, "headers_too_large", 65, 1),
        (own, 431, "headers_too_large", 5, 8_000),
        ("/healthz", 431, "headers_too_large", 65, 1),
        (&long, 414, "url_too_long", 0, 0),
    ] {
        let answer = with_headers(server, path, count, bytes).await;

        assert_eq!(raw::status(&answer), status, "{answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
        assert!(answer.contains("x-session-id"), "{answer}");
    }
    let fits = with_headers(server, own, 60, 400).await;
    assert_eq!(raw::status(&fits), 200, "{fits}");
}

/// The HTTP parser rejects these request heads before the server can create a request and choose an error format.
async fn a_head_that_cannot_be_parsed_gets_an_empty_answer(server: &Server) {
    let answer = with_headers(server, "/v1/threads/current", 97, 1).await;
    assert_eq!(raw::status(&answer), 431, "{answer}");
    assert!(answer.contains("content-length: 0"), "{answer}");
    let url = format!("/v1/{}", "u".repeat(70_000));
    let answer = with_headers(server, &url, 0, 0).await;
    assert_eq!(raw::status(&answer), 431, "{answer}");
    assert!(answer.contains("content-length: 0"), "{answer}");
}

async fn a_chunked_body_is_limited(server: &Server) {
    let thread = server.client().thread();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = head(&thread, "state/k", "transfer-encoding: chunked\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();

    let chunk = format!("10000\r\n{}\r\n", " ".repeat(65_536));
    for _ in 0..=BODY_BYTES / 65_536 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let _ = stream.write_all(b"1\r\n1\r\n0\r\n\r\n").await;

    let answer = raw::read_response(&mut stream).await;
    assert_eq!(raw::status(&answer), 413, "{answer}");
    assert!(answer.contains("\"code\":\"body_too_large\""), "{answer}");
}

async fn a_refused_client_may_reuse_its_connection(server: &Server) {
    let thread = server.client().thread();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let refused = format!("{}{{", head(&thread, "state/k", "content-length: 1\r\n"));
    let good = format!("{}1", head(&thread, "state/k", "content-length: 1\r\n"));

    stream.write_all(refused.as_bytes()).await.unwrap();
    let first = raw::read_response(&mut stream).await;
    stream.write_all(good.as_bytes()).await.unwrap();
    let second = raw::read_response(&mut stream).await;

    assert_eq!(raw::status(&first), 400, "{first}");
    assert_eq!(raw::status(&second), 200, "{second}");
}

async fn a_client_may_wait_for_100_continue(server: &Server) {
    let thread = server.client().thread();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let headers = "expect: 100-continue\r\ncontent-length: 1\r\n";
    let head = head(&thread, "state/k", headers);

    stream.write_all(head.as_bytes()).await.unwrap();
    let interim = raw::read_head(&mut stream).await;
    stream.write_all(b"1").await.unwrap();
    let answer = raw::read_response(&mut stream).await;

    assert_eq!(raw::status(&interim), 100, "{interim}");
    assert_eq!(raw::status(&answer), 200, "{answer}");
}

async fn an_incomplete_body_changes_nothing(server: &Server) {
    let thread = server.client().thread();
    let head = head(&thread, "state/k", "content-length: 10\r\n");
    let mut stream = TcpStream::connect(server.address()).await.unwrap();

    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"12345").await.unwrap();
    stream.shutdown().await.unwrap();
    raw::read_to_end(&mut stream).await;

    assert_eq!(thread.object().await["exists"], false);
}

async fn a_refusal_of_metadata_has_the_limit(server: &Server) {
    let thread = server.client().thread();
    let body = json!({"metadata": {"k": "x".repeat(16_384)}}).to_string();

    let problem = thread
        .patch("", &body)
        .refused(413, "metadata_too_large")
        .await;

    assert_eq!(problem["limit_bytes"], 16_384);
}

over_both_stores!(
    a_state_may_be_full_to_the_byte,
    a_write_over_the_limit_is_refused_and_changes_nothing,
    white_space_does_not_count,
    a_limit_applies_to_the_result_of_a_whole_write,
    a_push_fits_when_its_window_drops_elements,
    a_state_has_at_most_10000_keys,
    a_body_has_at_most_two_mebibytes,
    a_client_that_is_still_sending_can_read_its_refusal,
    a_large_body_without_access_is_refused_like_a_small_one,
    a_huge_content_length_is_refused_before_the_body,
    a_head_that_is_too_large_has_its_own_error_code,
    a_head_that_cannot_be_parsed_gets_an_empty_answer,
    a_chunked_body_is_limited,
    a_refused_client_may_reuse_its_connection,
    a_client_may_wait_for_100_continue,
    an_incomplete_body_changes_nothing,
    a_refusal_of_metadata_has_the_limit,
);
with_own_servers!(the_number_of_keys_is_a_setting);
