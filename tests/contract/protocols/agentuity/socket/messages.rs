use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::http::over_both_stores;
use crate::support::agentuity_socket::{CONTINUATION, FIN, Socket, TEXT, about, frame, request};
use crate::support::client::new_id;
use crate::support::server::Server;

const PING: u8 = 9;
const PROTOCOL: u16 = 1002;
const MAX_BYTES: usize = 8 * 1_048_576;

fn padded(id: &str, thread: &str, bytes: usize) -> String {
    let without = request(id, "restore", &about(thread, &[("later", "\"\"")]));
    let padding = format!("\"{}\"", "x".repeat(bytes - without.len()));
    request(id, "restore", &about(thread, &[("later", &padding)]))
}

fn refusal(id: &str, error: &str) -> Value {
    json!({"id": id, "success": false, "error": error})
}

async fn a_message_has_at_most_8_mib(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());

    let sizes = [MAX_BYTES, MAX_BYTES + 1, 2 * MAX_BYTES];
    for bytes in sizes {
        socket.send(&padded(&bytes.to_string(), &id, bytes)).await;
    }
    let mut answers = Vec::new();
    for _ in sizes {
        answers.push(socket.answer().await);
    }

    let why = "a message has at most 8388608 bytes";
    for expected in [
        json!({"id": MAX_BYTES.to_string(), "success": true}),
        refusal(&sizes[1].to_string(), why),
        refusal(&sizes[2].to_string(), why),
    ] {
        assert!(answers.contains(&expected), "{expected} in {answers:?}");
    }
    assert_eq!(socket.restore(&id).await, None);
}

async fn a_message_may_be_fragmented_with_pings_in_between(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let text = padded("p", &id, 1_000_000);
    let mut parts = text.as_bytes().chunks(70_000);

    socket.send_frame(TEXT, parts.next().unwrap()).await;
    for part in parts {
        socket.send_frame(FIN | PING, b"there?").await;
        let Some(Message::Pong(pong)) = socket.next_except_pings().await else {
            panic!("no pong");
        };
        assert_eq!(&pong[..], b"there?");
        socket.send_frame(CONTINUATION, part).await;
    }
    socket.send_frame(FIN | CONTINUATION, b"").await;

    assert_eq!(socket.text().await, r#"{"id":"p","success":true}"#);
}

async fn an_oversized_fragmented_message_is_rejected_at_its_end(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let text = padded("p", &id, MAX_BYTES + 1);
    let mut parts = text.as_bytes().chunks(3_000_000);

    socket.send_frame(TEXT, parts.next().unwrap()).await;
    for part in parts {
        socket.send_frame(CONTINUATION, part).await;
    }
    socket.send_frame(FIN | CONTINUATION, b"").await;

    let why = "a message has at most 8388608 bytes";
    assert_eq!(socket.answer().await, refusal("p", why));
    assert_eq!(socket.restore(&id).await, None);
}

async fn message_errors_carry_the_message_id(server: &Server) {
    let (mut socket, thread) = (Socket::open(server).await, new_id());
    let of_thread = |members: &[(&str, &str)]| about(&thread, members);
    let request = |action: &str, data: &str| request("1", action, data);
    let merge = |operations: &str| request("merge", &of_thread(&[("operations", operations)]));
    let save = |user_data: &str| request("save", &of_thread(&[("user_data", user_data)]));
    let set = r#"[{"op":"set","key":"a","value":1}]"#;
    let metadata = of_thread(&[("operations", set), ("metadata", "[]")]);

    for (text, why) in [
        (
            r#"{"id":"1","action":"restore""#.into(),
            "the message is not JSON at line 1 column",
        ),
        (
            request("restore", &format!("[\"{thread}\"]")),
            "the message does not have the shape of a request at line 1 column",
        ),
        (
            request("restore", "7"),
            "the message does not have the shape of a request at line 1 column",
        ),
        (
            request("save", &of_thread(&[("user_data", "{}")])),
            "the message does not have the shape of a request at line 1 column",
        ),
        (
            request("else", "{}"),
            "`action` must be restore, save, merge or delete",
        ),
        (r#"{"id":"1"}"#.into(), "`data` is missing"),
        (request("restore", "{}"), "`thread_id` is missing"),
        (request("save", &of_thread(&[])), "`user_data` is missing"),
        (request("merge", &of_thread(&[])), "`operations` is missing"),
        (
            save("\"{\""),
            "`user_data` must be a JSON object in a string",
        ),
        (
            save("\"[]\""),
            "`user_data` must be a JSON object in a string",
        ),
        (
            save(r#""{\"state\":[]}""#),
            "the state in `user_data`: expected a JSON object",
        ),
        (
            merge("[{}]"),
            "operation 0: `op` must be set, delete, clear or push",
        ),
        (
            merge(r#"[{"op":"clear"},{"op":"set","value":1}]"#),
            "operation 1: `key` must be a string",
        ),
        (
            merge(r#"[{"op":"push","key":"k","value":1,"maxRecords":"3"}]"#),
            "operation 0: `maxRecords` must be a number",
        ),
        (
            request("merge", &metadata),
            "`metadata`: expected a JSON object",
        ),
    ] {
        socket.send(&text).await;

        let answer = socket.answer().await;
        let error = answer["error"].as_str().unwrap();
        assert!(error.starts_with(why), "{text}: {error}");
        assert_eq!(answer, refusal("1", error));
    }
    for bad in [
        "thrd_short",
        "",
        "sess_0123456789abcdef0123456789abcdef",
        &"thrd_a".repeat(20),
    ] {
        let why = "`thread_id`: a thread id is `thrd_` and then letters and digits, 32 to 64 \
                   characters in all";
        assert_eq!(socket.refused("delete", &about(bad, &[])).await, why);
    }
    assert_eq!(socket.restore(&thread).await, None);
}

async fn errors_for_messages_without_an_id_have_no_id(server: &Server) {
    let mut socket = Socket::open(server).await;
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(255));

    for text in [
        "",
        "7",
        "[]",
        "{}",
        r#"{"id":7}"#,
        &long,
        "nonsense",
        r#"{"id":"#,
    ] {
        socket.send(text).await;

        let answer = socket.answer().await;
        assert_eq!(answer["success"], false, "{text}");
        assert!(answer["error"].is_string(), "{text}");
        assert_eq!(answer.get("id"), None, "{text}");
    }
}

async fn an_id_is_echoed_unchanged(server: &Server) {
    let (mut socket, thread) = (Socket::open(server).await, new_id());
    let longest = format!("\"{}\"", "x".repeat(254));

    for id in [r#""""#, r#""\u0041\/ é😀\ud83d""#, &longest] {
        let data = about(&thread, &[]);
        let text = format!(r#"{{"data":{data},"id":{id},"action":"restore"}}"#);
        socket.send(&text).await;

        assert_eq!(
            socket.text().await,
            format!(r#"{{"id":{id},"success":true}}"#)
        );
    }
}

async fn binary_and_non_utf8_messages_do_not_close_the_socket(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let text = request("1", "restore", &about(&id, &[]));

    socket.send_message(Message::binary(text.clone())).await;
    let binary = socket.answer().await;
    let not_utf8 = [text.as_bytes(), b" \xff"].concat();
    socket.send_frame(FIN | TEXT, &not_utf8).await;
    let not_utf8 = socket.answer().await;

    assert_eq!(binary, refusal("1", "a message must be text"));
    assert_eq!(not_utf8, refusal("1", "the message is not UTF-8"));
    assert_eq!(socket.restore(&id).await, None);
}

async fn protocol_violations_close_with_code_1002(server: &Server) {
    for bytes in [
        vec![FIN | TEXT, 1, b'a'],
        // the bit for compression, although no compression was negotiated
        frame(FIN | 0x40 | TEXT, b"a"),
        // a continuation without a beginning
        frame(FIN | CONTINUATION, b"a"),
        // an undefined opcode
        frame(FIN | 3, b"a"),
        // a ping that exceeds 125 bytes
        frame(FIN | PING, &[0; 126]),
        [frame(TEXT, b"a"), frame(TEXT, b"b")].concat(),
    ] {
        let mut socket = Socket::open(server).await;

        socket.send_bytes(&bytes).await;

        assert_eq!(socket.closed().await, PROTOCOL, "{bytes:?}");
    }
}

async fn a_close_frame_is_echoed(server: &Server) {
    let mut socket = Socket::open(server).await;

    socket.send_frame(FIN | 8, &4_321_u16.to_be_bytes()).await;

    assert_eq!(socket.closed().await, 4_321);
    assert!(socket.next().await.is_none());
}

over_both_stores!(
    a_message_has_at_most_8_mib,
    a_message_may_be_fragmented_with_pings_in_between,
    an_oversized_fragmented_message_is_rejected_at_its_end,
    message_errors_carry_the_message_id,
    errors_for_messages_without_an_id_have_no_id,
    an_id_is_echoed_unchanged,
    binary_and_non_utf8_messages_do_not_close_the_socket,
    protocol_violations_close_with_code_1002,
    a_close_frame_is_echoed,
);
