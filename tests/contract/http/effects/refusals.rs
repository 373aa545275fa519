//! Tests the status and the code of each refusal to begin or to find a call.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{ARGUMENTS, CALL, begin, call_with, changed, fence, get, grant, release, settle, take};
use crate::support::server::Server;

/// Maximum size of an id, a hash and the name of a tool.
const NAME_BYTES_MAX: usize = 128;
const OPEN_MAX: usize = 64;

async fn an_unknown_call_is_not_found(server: &Server) {
    let thread = server.client().thread();
    let absent = server.client().thread();
    let turn = take(&thread).await;
    let a = grant(&thread, &turn, "a").await;
    let result = json!({"fence": fence(&a), "result": 1});

    for request in [
        thread.get("effects/b"),
        settle(&thread, "b", &result),
        settle(&thread, "b", &json!({"result": 1})).header("x-turn-token", &turn),
        begin(&thread, &turn, "b", &call_with(r#""retry":1"#)),
        absent.get("effects/a"),
        settle(&absent, "a", &result),
    ] {
        request.refused(404, "not_found").await;
    }
    begin(&absent, &turn, "a", CALL)
        .refused(409, "turn_lost")
        .await;
    assert_eq!(absent.object().await["exists"], false);
    assert_eq!(
        thread.get("effects").ok().await.json()["effects"],
        json!([changed(&a, json!({"state": "running"}))])
    );
}

async fn a_call_begins_only_under_the_held_turn(server: &Server) {
    let thread = server.client().thread();
    let first = take(&thread).await;
    release(&thread, &first).await;

    let problem = begin(&thread, &first, "a", CALL);
    let problem = problem.refused(409, "turn_not_held").await;
    assert_eq!(problem["number"], 1);
    let second = take(&thread).await;
    for lost in [&*first, "turn_ffffffffffffffffffffffffffffffff", "no token"] {
        let request = begin(&thread, lost, "a", CALL);
        request.refused(409, "turn_lost").await;
    }
    let no_effects = thread.get("effects").ok().await.json();
    assert_eq!(no_effects["effects"], json!([]));
    grant(&thread, &second, "a").await;
}

async fn an_id_belongs_to_one_tool_and_its_arguments(server: &Server) {
    let thread = server.client().thread();
    let turn = take(&thread).await;
    grant(&thread, &turn, "a").await;
    let hash = hex::encode(Sha256::digest(ARGUMENTS));

    for same in [
        r#"{ "tool" : "send_mail", "arguments" : { "to" : "ada" } }"#.to_owned(),
        json!({"tool": "send_mail", "hash": hash}).to_string(),
        json!({"tool": "send_mail", "hash": hash, "arguments": 1}).to_string(),
    ] {
        let effect = begin(&thread, &turn, "a", &same).ok().await.json();
        assert_eq!(effect["state"], "running", "{same}");
    }
    for other in [
        CALL.replace("send_mail", "read_mail"),
        CALL.replace("ada", "bob"),
        r#"{"tool":"send_mail"}"#.into(),
        json!({"tool": "send_mail", "hash": hash.to_uppercase()}).to_string(),
        call_with(r#""hash":"1","retry":1"#),
    ] {
        let request = begin(&thread, &turn, "a", &other);
        request.refused(422, "effect_reused").await;
    }
    // absent arguments count as null
    for body in [r#"{"tool":"t"}"#, r#"{"tool":"t","arguments":null}"#] {
        begin(&thread, &turn, "b", body).ok().await;
    }
    let hash = hex::encode(Sha256::digest("null"));
    assert_eq!(get(&thread, "b").await["hash"], hash);
}

async fn a_thread_has_at_most_64_open_calls(server: &Server) {
    let thread = server.client().thread();
    let turn = take(&thread).await;
    let failed = grant(&thread, &turn, "failed").await;
    let error = json!({"fence": fence(&failed), "error": 1});
    settle(&thread, "failed", &error).ok().await;
    let mut last = Value::Null;
    for number in 0..OPEN_MAX {
        last = grant(&thread, &turn, &format!("call_{number}")).await;
    }

    for request in [
        begin(&thread, &turn, "more", CALL),
        begin(&thread, &turn, "failed", &call_with(r#""retry":1"#)),
    ] {
        let problem = request.refused(409, "too_many_effects").await;
        let limits = ["limit_effects", "limit_open", "limit_bytes"];
        let limits = limits.map(|limit| problem[limit].as_u64().unwrap());
        assert_eq!(limits, [1_000, 64, 4_194_304]);
    }
    let known = begin(&thread, &turn, "call_0", CALL).ok().await.json();
    assert_eq!(known["state"], "running");
    let id = format!("call_{}", OPEN_MAX - 1);
    let result = json!({"fence": fence(&last), "result": 1});
    settle(&thread, &id, &result).ok().await;
    grant(&thread, &turn, "more").await;
}

async fn an_id_is_percent_encoded_in_the_path(server: &Server) {
    let thread = server.client().thread();
    let turn = take(&thread).await;
    let longest = "x".repeat(NAME_BYTES_MAX);

    for id in [
        r#"a/b?c#d%e+f"g;h:i{j}|k\l^m~%2F"#,
        "refund:order-42",
        "state",
        &longest,
    ] {
        let encoded = utf8_percent_encode(id, NON_ALPHANUMERIC).to_string();
        let granted = grant(&thread, &turn, &encoded).await;
        assert_eq!(granted["id"], id);
        let result = json!({"fence": fence(&granted), "result": 1});
        let settled = settle(&thread, &encoded, &result).ok().await.json();
        assert_eq!(settled["id"], id);
        assert_eq!(get(&thread, &encoded).await["id"], id);
    }
    let plus = grant(&thread, &turn, "a+b").await;
    assert_eq!(plus["id"], "a+b");
    assert_eq!(get(&thread, "a%2Bb").await["id"], "a+b");
}

async fn malformed_requests_begin_nothing(server: &Server) {
    let thread = server.client().thread();
    let turn = take(&thread).await;
    let long = "x".repeat(NAME_BYTES_MAX + 1);

    for body in [
        "{}",
        "[]",
        "7",
        r#"{"arguments":{}}"#,
        r#"{"tool":""}"#,
        r#"{"tool":7}"#,
        r#"{"tool":null}"#,
        &json!({"tool": long}).to_string(),
        &json!({"tool": "é".repeat(65)}).to_string(),
        &call_with(r#""hash":"""#),
        &call_with(r#""hash":"a b""#),
        &call_with(r#""hash":"é""#),
        &call_with(r#""hash":7"#),
        &call_with(r#""hash":null"#),
        &call_with(&format!(r#""hash":"{long}""#)),
        &call_with(r#""retry":0"#),
        &call_with(r#""retry":-1"#),
        &call_with(r#""retry":1.5"#),
        &call_with(r#""retry":"1""#),
        &call_with(r#""retry":4294967296"#),
        &call_with(r#""idempotent":"yes""#),
        &call_with(r#""id":"a""#),
        &call_with(r#""fence":"""#),
    ] {
        let request = begin(&thread, &turn, "a", body);
        request.refused(400, "invalid_parameter").await;
    }
    for body in ["", "{"] {
        let request = begin(&thread, &turn, "a", body);
        request.refused(400, "invalid_json").await;
    }
    let begin = || thread.post("effects/a", CALL);
    let with_token = || begin().header("x-turn-token", &turn);
    for request in [
        begin(),
        with_token().header("x-turn-token", &turn),
        with_token().header("if-match", "*"),
        with_token().header("x-thread-life", "0123456789abcdef"),
        with_token().key("a b"),
        with_token().key(&long),
        with_token().key("a").key("b"),
        thread
            .post("effects/a?ttl_seconds=60", CALL)
            .header("x-turn-token", &turn),
        thread.get("effects/a?peek=true"),
    ] {
        request.refused(400, "invalid_parameter").await;
    }
    for id in ["", "a%20b", "%C3%A9", "%7F", "%00", "%zz", "%", &long] {
        let path = format!("effects/{id}");
        for request in [
            thread.post(&path, CALL).header("x-turn-token", &turn),
            thread
                .put(&path, r#"{"result":1}"#)
                .header("x-turn-token", &turn),
            thread.get(&path),
        ] {
            request.refused(400, "invalid_parameter").await;
        }
    }
    for method in [Method::DELETE, Method::PATCH] {
        let answer = thread.request(method, "effects/a").send().await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, PUT"));
    }
    let post = thread.post("effects", CALL);
    post.refused(405, "method_not_allowed").await;
    let effects = thread.get("effects").ok().await.json();
    assert_eq!(effects["effects"], json!([]));
}

over_both_stores!(
    an_unknown_call_is_not_found,
    a_call_begins_only_under_the_held_turn,
    an_id_belongs_to_one_tool_and_its_arguments,
    a_thread_has_at_most_64_open_calls,
    an_id_is_percent_encoded_in_the_path,
    malformed_requests_begin_nothing,
);
