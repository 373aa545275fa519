use serde_json::{Value, json};

use crate::http::over_both_stores;
use crate::support::agentuity_socket::{Socket, about};
use crate::support::client::new_id;
use crate::support::server::Server;

fn save_data(thread: &str, user_data: &str, metadata: Option<&str>) -> String {
    let user_data = Value::from(user_data).to_string();
    let mut members = vec![("user_data", user_data.as_str())];
    members.extend(metadata.map(|metadata| ("metadata", metadata)));
    about(thread, &members)
}

async fn a_thread_is_saved_restored_and_deleted(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let envelope = r#"{"state":{"a":[1,2]},"metadata":{"ignored":true}}"#;

    assert_eq!(socket.restore(&id).await, None);
    let data = save_data(&id, envelope, Some(r#"{"m":1}"#));
    assert_eq!(socket.ok("save", &data).await, None);
    let saved = socket.restore(&id).await;
    socket.ok("delete", &about(&id, &[])).await;
    let deleted = socket.restore(&id).await;
    // after a deletion, the client keeps its cookie, so its next request uses the same id
    socket.save(&id, r#"{"b":1}"#).await;

    let expected = r#"{"state":{"a":[1,2]},"metadata":{"m":1}}"#;
    assert_eq!(saved.as_deref(), Some(expected));
    assert_eq!(deleted, None);
    let again = socket.restore(&id).await;
    assert_eq!(again.as_deref(), Some(r#"{"state":{"b":1}}"#));
}

async fn deleting_an_unknown_thread_succeeds(server: &Server) {
    let mut socket = Socket::open(server).await;

    socket.ok("delete", &about(&new_id(), &[])).await;
}

async fn a_save_replaces_the_state_that_was_restored(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    socket.save(&id, r#"{"a":1,"b":2}"#).await;
    socket.restore(&id).await;

    socket.save(&id, r#"{"b":3}"#).await;
    let replaced = socket.restore(&id).await;
    // a client sends an empty state after its app has removed all keys
    socket.ok("save", &save_data(&id, "", None)).await;
    let emptied = socket.restore(&id).await;

    assert_eq!(replaced.as_deref(), Some(r#"{"state":{"b":3}}"#));
    assert_eq!(emptied.as_deref(), Some("{}"));
}

async fn metadata_is_a_separate_member_and_is_kept_when_absent(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let envelope = r#"{"state":{"a":1},"metadata":{"stale":1}}"#;
    let data = save_data(&id, envelope, Some(r#"{"m":1,"n":2}"#));
    socket.ok("save", &data).await;

    socket.ok("save", &save_data(&id, envelope, None)).await;
    let kept = socket.restore(&id).await;
    socket
        .ok("save", &save_data(&id, envelope, Some(r#"{"n":3}"#)))
        .await;
    let replaced = socket.restore(&id).await;
    let set = r#"[{"op":"set","key":"a","value":2}]"#;
    let data = about(&id, &[("operations", set), ("metadata", r#"{"o":4}"#)]);
    socket.ok("merge", &data).await;
    let merged = socket.restore(&id).await;

    let expected = |state, metadata| Some(format!(r#"{{"state":{state},"metadata":{metadata}}}"#));
    assert_eq!(kept, expected(r#"{"a":1}"#, r#"{"m":1,"n":2}"#));
    assert_eq!(replaced, expected(r#"{"a":1}"#, r#"{"n":3}"#));
    assert_eq!(merged, expected(r#"{"a":2}"#, r#"{"o":4}"#));
}

async fn operations_run_in_order_including_a_clear(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    socket.save(&id, r#"{"old":1}"#).await;

    socket
        .merge(
            &id,
            r#"[{"op":"set","key":"before","value":1},{"op":"clear"},
                {"op":"push","key":"list","value":1},{"op":"push","key":"list","value":2},
                {"op":"push","key":"list","value":3,"maxRecords":2},
                {"op":"set","key":"a","value":{"x":[]}},{"op":"set","key":"b","value":null},
                {"op":"delete","key":"a"},{"op":"delete","key":"never"}]"#,
        )
        .await;

    let merged = socket.restore(&id).await;
    assert_eq!(
        merged.as_deref(),
        Some(r#"{"state":{"b":null,"list":[2,3]}}"#)
    );
}

async fn writes_over_a_limit_are_rejected_and_change_nothing(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let large = "x".repeat(600_000);
    socket.save(&id, &format!(r#"{{"a":"{large}"}}"#)).await;
    let before = socket.restore(&id).await;

    let set = format!(r#"[{{"op":"set","key":"b","value":"{large}"}}]"#);
    let merge = socket
        .refused("merge", &about(&id, &[("operations", &set)]))
        .await;
    let state = json!({"state": {"a": large, "b": large}}).to_string();
    let save = socket.refused("save", &save_data(&id, &state, None)).await;

    let expected = "the state would have 1200015 bytes; the limit is 1048576";
    assert_eq!((merge.as_str(), save.as_str()), (expected, expected));
    assert_eq!(socket.restore(&id).await, before);
}

async fn a_thread_is_byte_identical_over_http(server: &Server) {
    let (mut socket, id) = (Socket::open(server).await, new_id());
    let thread = server.client().thread_of(&id);
    let state = r#"{"":"empty","__proto__":1e21,"a":9007199254740993,"b":"\ud83d","c":[1.0,-0,{"k":1,"k":2}],"d":{},"e":[],"state":{"metadata":"é😀"}}"#;

    socket.save(&id, state).await;
    let over_http = thread.state().await;
    thread.put("state/f", "[ 1 ]").ok().await;
    let over_socket = socket.restore(&id).await;

    assert_eq!(over_http, state);
    let with_f = state.replace(r#","state""#, r#","f":[1],"state""#);
    assert_eq!(over_socket, Some(format!(r#"{{"state":{with_f}}}"#)));
}

over_both_stores!(
    a_thread_is_saved_restored_and_deleted,
    deleting_an_unknown_thread_succeeds,
    a_save_replaces_the_state_that_was_restored,
    metadata_is_a_separate_member_and_is_kept_when_absent,
    operations_run_in_order_including_a_clear,
    writes_over_a_limit_are_rejected_and_change_nothing,
    a_thread_is_byte_identical_over_http,
);
