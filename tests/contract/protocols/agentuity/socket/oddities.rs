//! Tests unusual but valid messages that the published client sends.

use serde_json::Value;

use crate::http::over_both_stores;
use crate::support::agentuity_socket::{Socket, about};
use crate::support::client::new_id;
use crate::support::server::Server;

async fn merged(server: &Server, before: &str, operations: &str) -> String {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    socket.save(&id, before).await;
    socket.merge(&id, operations).await;
    server.client().thread_of(&id).state().await
}

async fn a_set_without_a_value_deletes(server: &Server) {
    let state = merged(server, r#"{"a":1,"b":2}"#, r#"[{"op":"set","key":"a"}]"#).await;

    assert_eq!(state, r#"{"b":2}"#);
}

async fn a_push_without_a_value_pushes_null(server: &Server) {
    let state = merged(server, r#"{"a":[1]}"#, r#"[{"op":"push","key":"a"}]"#).await;

    assert_eq!(state, r#"{"a":[1,null]}"#);
}

async fn a_window_may_be_any_number(server: &Server) {
    for (window, expected) in [
        ("null", "[1,2,3,4]"),
        ("2", "[3,4]"),
        ("2.9", "[3,4]"),
        ("1e0", "[4]"),
        ("0", "[]"),
        ("0.5", "[]"),
        ("-1", "[]"),
        ("-1e400", "[]"),
        ("1e400", "[1,2,3,4]"),
        ("1e30", "[1,2,3,4]"),
        ("9007199254740993", "[1,2,3,4]"),
    ] {
        let push = format!(r#"[{{"op":"push","key":"a","value":4,"maxRecords":{window}}}]"#);

        let state = merged(server, r#"{"a":[1,2,3]}"#, &push).await;

        assert_eq!(state, format!(r#"{{"a":{expected}}}"#), "{window}");
    }
}

async fn a_window_of_zero_creates_an_empty_array(server: &Server) {
    let push = r#"[{"op":"push","key":"new","value":1,"maxRecords":0}]"#;

    assert_eq!(merged(server, "{}", push).await, r#"{"new":[]}"#);
}

async fn a_push_to_a_non_array_is_skipped_and_the_rest_is_applied(server: &Server) {
    let before = r#"{"a":{},"b":"x","c":null,"d":[]}"#;
    let push = |key| format!(r#"{{"op":"push","key":"{key}","value":1}}"#);
    let pushes = ["a", "b", "c", "d", "e"].map(push).join(",");
    let operations = format!(r#"[{pushes},{{"op":"set","key":"f","value":2}}]"#);

    let state = merged(server, before, &operations).await;

    assert_eq!(state, r#"{"a":{},"b":"x","c":null,"d":[1],"e":[1],"f":2}"#);
}

async fn keys_may_be_any_text(server: &Server) {
    let longest = "k".repeat(65_536);
    let keys = [
        "",
        "__proto__",
        "state",
        "metadata",
        "😀",
        "a/b",
        ".",
        "\u{0}\n\"\\\u{7f}",
        &longest,
    ];
    for key in keys {
        let (mut socket, id) = (Socket::open(server).await, new_id());
        let key = Value::from(key).to_string();

        let set = format!(r#"[{{"op":"set","key":{key},"value":1}}]"#);
        socket.merge(&id, &set).await;
        let merged = socket.restore(&id).await;
        socket.save(&id, &format!("{{{key}:2}}")).await;
        let saved = socket.restore(&id).await;
        let delete = format!(r#"[{{"op":"delete","key":{key}}}]"#);
        socket.merge(&id, &delete).await;

        assert_eq!(merged, Some(format!(r#"{{"state":{{{key}:1}}}}"#)));
        assert_eq!(saved, Some(format!(r#"{{"state":{{{key}:2}}}}"#)));
        assert_eq!(socket.restore(&id).await.as_deref(), Some("{}"));
    }
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let set = format!(r#"[{{"op":"set","key":"{longest}k","value":1}}]"#);
    let why = socket
        .refused("merge", &about(&id, &[("operations", &set)]))
        .await;
    assert_eq!(why, "operation 0: `key`: a key has at most 65,536 bytes");
}

async fn the_text_of_values_is_preserved(server: &Server) {
    for value in [
        r#""\ud83d""#,
        r#""\udc00\ud83d \u0041 \/""#,
        "1e21",
        "9007199254740993",
        "1.0",
        "-0",
        "1e400",
        "[]",
        "{}",
        "null",
        r#"{"k":1,"k":2}"#,
        "\"\u{2028}\u{7f}😀\"",
    ] {
        let (mut socket, id) = (Socket::open(server).await, new_id());

        let merge = format!(
            r#"[{{"op":"set","key":"a","value":{value}}},{{"op":"push","key":"b","value":{value}}}]"#
        );
        socket.merge(&id, &merge).await;
        let merged = socket.restore(&id).await;
        socket
            .save(&id, &format!(r#"{{"a":{value},"b":[{value}]}}"#))
            .await;

        let expected = format!(r#"{{"state":{{"a":{value},"b":[{value}]}}}}"#);
        assert_eq!(merged.as_ref(), Some(&expected));
        assert_eq!(socket.restore(&id).await, Some(expected));
    }
}

async fn an_empty_merge_clears_the_metadata(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let set = r#"[{"op":"set","key":"a","value":1}]"#;
    let data = about(&id, &[("operations", set), ("metadata", r#"{"m":1}"#)]);
    socket.ok("merge", &data).await;

    // a merge with only metadata preserves the state, and a merge with only operations preserves the metadata
    let data = about(&id, &[("operations", "[]"), ("metadata", r#"{"m":2}"#)]);
    socket.ok("merge", &data).await;
    socket.merge(&id, set).await;
    let before = socket.restore(&id).await;
    socket.merge(&id, "[]").await;

    let expected = r#"{"state":{"a":1},"metadata":{"m":2}}"#;
    assert_eq!(before.as_deref(), Some(expected));
    let after = socket.restore(&id).await;
    assert_eq!(after.as_deref(), Some(r#"{"state":{"a":1}}"#));
}

async fn a_state_without_an_envelope_is_accepted(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());

    let data = about(&id, &[("user_data", r#""{\"a\":1}""#)]);
    socket.ok("save", &data).await;

    let restored = socket.restore(&id).await;
    assert_eq!(restored.as_deref(), Some(r#"{"state":{"a":1}}"#));
}

over_both_stores!(
    a_set_without_a_value_deletes,
    a_push_without_a_value_pushes_null,
    a_window_may_be_any_number,
    a_window_of_zero_creates_an_empty_array,
    a_push_to_a_non_array_is_skipped_and_the_rest_is_applied,
    keys_may_be_any_text,
    the_text_of_values_is_preserved,
    an_empty_merge_clears_the_metadata,
    a_state_without_an_envelope_is_accepted,
);
