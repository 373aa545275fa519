use crate::support::client::{OwnThread, key_path};
use crate::support::server::Server;

/// Compact JSON values that would change if they were parsed into numbers and maps.
const VALUES: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.10",
    "1e400",
    "1E+2",
    "-1e-999",
    "9007199254740993",
    "123456789012345678901234567890.123456789012345678901234567890",
    "[]",
    "{}",
    "[[],{},[{}]]",
    r#"{"b":1,"a":2,"B":3}"#,
    r#"{"a":1,"a":2,"\u0061":3}"#,
    r#"{"":{"":""}}"#,
    r#"{"__proto__":{"x":1},"constructor":null}"#,
    r#""""#,
    r#"" \t\n white  space ""#,
    r#""\u0041\/\u00e9""#,
    r#""\u0000\u001f\b\f""#,
    r#""\ud83d""#,
    r#""\ude00\ud83d""#,
    r#""\uD83D\uDE00""#,
    r#"["\udfff",{"\ud800":"\udbff"}]"#,
    "\"é 😀 \\u2028 \u{2028} \u{202e}\"",
    "\"\u{7f}\u{fffd}\u{10ffff}\"",
    r#""\"\\\"""#,
    r#""[1,2]""#,
    "true",
    "false",
    "null",
    "[null,true,1.0]",
];

async fn value(thread: &OwnThread, key: &str) -> String {
    thread.get(&key_path(key)).ok().await.text()
}

async fn a_value_set_by_its_key_is_returned_exactly(server: &Server) {
    let thread = server.client().thread();

    for text in VALUES {
        let receipt = thread.put("state/k", text).ok().await.json();

        assert_eq!(value(&thread, "k").await, *text);
        let state = thread.state().await;
        assert_eq!(state, format!(r#"{{"k":{text}}}"#));
        assert_eq!(receipt["size_bytes"], state.len());
    }
}

async fn every_kind_of_write_stores_a_value_exactly(server: &Server) {
    let client = server.client();

    for text in VALUES {
        let set = client.thread();
        set.merge(&format!(r#"[{{"op":"set","key":"k","value":{text}}}]"#))
            .ok()
            .await;
        let replaced = client.thread();
        replaced
            .put("state", &format!(r#"{{"k":{text}}}"#))
            .ok()
            .await;
        let made = client
            .post("/v1/threads")
            .json(&format!(r#"{{"state":{{"k":{text}}}}}"#))
            .ok()
            .await;
        let made = client.thread_of(made.json()["id"].as_str().unwrap());

        for thread in [set, replaced, made] {
            assert_eq!(value(&thread, "k").await, *text);
        }
    }
}

async fn elements_of_an_array_are_returned_exactly(server: &Server) {
    let thread = server.client().thread();
    let array = format!("[{}]", VALUES.join(","));

    for text in VALUES {
        thread.post("state/pushed/push", text).ok().await;
    }
    thread.put("state/set", &array).ok().await;

    assert_eq!(value(&thread, "pushed").await, array);
    assert_eq!(value(&thread, "set").await, array);
    for (n, text) in VALUES.iter().enumerate() {
        let one = thread
            .get(&format!("state/pushed?offset={n}&limit=1"))
            .ok()
            .await;

        assert_eq!(one.text(), format!("[{text}]"));
    }
}

async fn a_merge_patch_sets_values_exactly(server: &Server) {
    let thread = server.client().thread();
    // skip `null` and objects, because a merge patch deletes members with `null` and keeps one of each repeated name
    let is_plain = |text: &&&str| !text.starts_with('{') && **text != "null";

    for text in VALUES.iter().filter(is_plain) {
        thread
            .merge_patch(&format!(r#"{{"k":{text},"o":{{"in":{text}}}}}"#))
            .ok()
            .await;

        assert_eq!(value(&thread, "k").await, *text);
        assert_eq!(value(&thread, "o").await, format!(r#"{{"in":{text}}}"#));
    }
}

async fn a_merge_patch_uses_the_last_of_a_repeated_key_and_keeps_others(server: &Server) {
    for (object, patch, merged) in [
        (
            r#"{"x":1,"y":2.0,"y":3,"x":4}"#,
            r#"{"x":5}"#,
            r#"{"y":2.0,"y":3,"x":5}"#,
        ),
        (
            r#"{"x":{"a":1},"y":[{}],"x":{"b":1,"b":2}}"#,
            r#"{"x":{"c":3},"z":{"n":null,"m":1}}"#,
            r#"{"y":[{}],"x":{"b":1,"b":2,"c":3},"z":{"m":1}}"#,
        ),
        (
            r#"{"x":{"a":1},"\u0078":"text"}"#,
            r#"{"x":{"b":2}}"#,
            r#"{"\u0078":{"b":2}}"#,
        ),
        (r#"{"x":1,"y":1,"x":2}"#, r#"{"x":null}"#, r#"{"y":1}"#),
        (
            "{}",
            r#"{"x":1,"y":2,"x":{"z":3}}"#,
            r#"{"y":2,"x":{"z":3}}"#,
        ),
    ] {
        let thread = server.client().thread();
        thread.put("state/k", object).ok().await;

        let patch = format!("{{\"k\":{patch}}}");
        thread.merge_patch(&patch).ok().await;

        assert_eq!(thread.get("state/k").ok().await.text(), merged);
    }
}

async fn white_space_is_removed_except_in_strings(server: &Server) {
    let thread = server.client().thread();
    let spaced = "\r\n\t { \"a b\" : [ 1 , 2.0\n, { } , [ ] , \" x \\\" , y \" ] }\t\n";

    thread.put("state/k", spaced).ok().await;
    thread.post("state/l/push", spaced).ok().await;

    let compact = r#"{"a b":[1,2.0,{},[]," x \" , y "]}"#;
    assert_eq!(value(&thread, "k").await, compact);
    assert_eq!(value(&thread, "l").await, format!("[{compact}]"));
}

fn nested(levels: usize, open: &str, close: &str) -> String {
    format!("{}{}", open.repeat(levels), close.repeat(levels))
}

async fn values_may_be_nested_512_levels_deep(server: &Server) {
    let thread = server.client().thread();

    for levels in [100, 511, 512] {
        let arrays = nested(levels, "[", "]");
        let objects = nested(levels, "{\"a\":", "}").replace(":}", ":{}}");
        thread.put("state/k", &arrays).ok().await;
        assert_eq!(value(&thread, "k").await, arrays);

        // Remove one object, because the empty innermost object also counts as a level.
        let objects = objects.strip_prefix("{\"a\":").unwrap();
        let objects = objects.strip_suffix('}').unwrap();
        thread.put("state/k", objects).ok().await;
        assert_eq!(value(&thread, "k").await, objects);
    }
}

async fn deeper_nesting_is_refused_as_invalid_json(server: &Server) {
    let thread = server.client().thread();

    for levels in [513, 10_000, 500_000] {
        let problem = thread
            .put("state/k", &nested(levels, "[", "]"))
            .refused(400, "invalid_json")
            .await;

        assert_eq!(problem["line"], 1);
        assert_eq!(problem["column"], 513);
    }
    thread
        .merge(&format!(
            r#"[{{"op":"set","key":"k","value":{}}}]"#,
            nested(513, "[", "]")
        ))
        .refused(400, "invalid_json")
        .await;
    thread
        .put("state/k", &"{\"a\":".repeat(400_000))
        .refused(400, "invalid_json")
        .await;
}

async fn every_legal_key_names_its_own_value(server: &Server) {
    let thread = server.client().thread();
    let longest = "k".repeat(256);
    let longest_wide = "é".repeat(128);
    let keys = [
        "M",
        "m",
        "c0:0",
        "c1:0",
        "state",
        "keys",
        "push",
        "current",
        "__proto__",
        "constructor",
        "toString",
        "a/b",
        "/",
        "a/push",
        "a b",
        " ",
        "%",
        "%41",
        "?",
        "#",
        "+",
        "&",
        ";",
        ":",
        "\"",
        "\\",
        "'",
        "a\"b:",
        "{",
        "[]",
        "null",
        "0",
        "-1",
        "é",
        "e\u{301}",
        "😀",
        "\u{80}",
        "\u{2028}",
        "\u{feff}",
        "...",
        "日本語",
        &longest,
        &longest_wide,
    ];

    for (n, key) in keys.iter().enumerate() {
        thread.put(&key_path(key), &n.to_string()).ok().await;
    }

    for (n, key) in keys.iter().enumerate() {
        assert_eq!(value(&thread, key).await, n.to_string(), "{key:?}");
    }
    let state = thread.get("state").ok().await;
    let object = state.json();
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    assert_eq!(object.as_object().unwrap().len(), keys.len());
    assert_eq!(
        thread.get("keys").ok().await.json(),
        serde_json::json!(sorted)
    );
    assert_eq!(thread.object().await["size_bytes"], state.body.len());
}

async fn a_key_is_the_same_in_a_path_and_in_json_however_it_is_escaped(server: &Server) {
    let thread = server.client().thread();

    thread.put("state/%C3%A9%2fx", "1").ok().await;
    thread
        .merge(r#"[{"op":"increment","key":"\u00e9\/x"}]"#)
        .ok()
        .await;
    thread.merge_patch(r#"{"\u00E9/\u0078":3}"#).ok().await;

    assert_eq!(thread.state().await, r#"{"é/x":3}"#);
    assert_eq!(value(&thread, "é/x").await, "3");
    assert_eq!(
        thread.get("state?key=%c3%a9/x").ok().await.text(),
        r#"{"é/x":3}"#
    );
}

async fn keys_that_urls_cannot_carry_work_in_merges_and_queries(server: &Server) {
    let thread = server.client().thread();

    thread
        .merge(r#"[{"op":"set","key":".","value":1},{"op":"set","key":"..","value":2}]"#)
        .ok()
        .await;

    assert_eq!(thread.state().await, r#"{".":1,"..":2}"#);
    assert_eq!(thread.get("state?key=..").ok().await.text(), r#"{"..":2}"#);
}

async fn the_server_resolves_no_dot_segments(server: &Server) {
    use crate::support::raw;
    let thread = server.client().thread();
    thread.put("state", r#"{"..":"dots","k":1}"#).ok().await;

    for path in ["state/..", "state/%2e%2e"] {
        let answer = raw::exchange(
            server.address(),
            format!(
                "GET /v1/threads/current/{path} HTTP/1.1\r\nhost: x\r\nx-thread-id: {}\r\n\
                 connection: close\r\n\r\n",
                thread.signed
            ),
        )
        .await;

        assert_eq!(raw::status(&answer), 200, "{answer}");
        assert!(answer.ends_with("\r\n\r\n\"dots\""), "{answer}");
    }
}

async fn illegal_keys_are_refused_everywhere(server: &Server) {
    let thread = server.client().thread();
    let long = "k".repeat(257);

    for path in [
        "%00",
        "%1f",
        "%7F",
        "a%0Ab",
        "%ff",
        "%c3",
        "%ed%a0%80",
        &long,
    ] {
        for request in [
            thread.get(&format!("state/{path}")),
            thread.put(&format!("state/{path}"), "1"),
            thread.delete(&format!("state/{path}")),
            thread.post(&format!("state/{path}/push"), "1"),
            thread.post(&format!("state/{path}/increment"), "{}"),
            thread.get(&format!("state?key={path}")),
        ] {
            request.refused(400, "invalid_key").await;
        }
    }
    for key in [
        "",
        "\\u0000",
        "\\n",
        "\\u007f",
        "\\ud800",
        "\\udc00\\ud800",
        &long,
    ] {
        let body = format!(r#"{{"a":1,"{key}":1}}"#);

        thread.put("state", &body).refused(400, "invalid_key").await;
        thread.merge_patch(&body).refused(400, "invalid_key").await;
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn the_size_is_the_length_of_the_state_after_every_write(server: &Server) {
    let thread = server.client().thread();

    for request in [
        thread.put("state/a", r#""é\u00e9""#),
        thread.put("state/%22", "[ 1, 2 ]"),
        thread.post("state/%22/push", "{ }"),
        thread.post("state/n/increment", r#"{"by":99}"#),
        thread.post("state/n/increment", "{}"),
        thread.post("state/l/push?max_records=2", "\"first\""),
        thread.post("state/l/push?max_records=2", "2"),
        thread.post("state/l/push?max_records=2", "3"),
        thread.merge_patch(r#"{"o":{"x":[1.0]},"a":null}"#),
        thread.merge_patch(r#"{"o":{"x":null}}"#),
        thread.delete("state/absent"),
        thread.delete("state/l"),
        thread.merge(r#"[{"op":"clear"},{"op":"set","key":"k\\","value":1}]"#),
        thread.put("state", r#"{"x":1,"x":22}"#),
        thread.delete("state"),
    ] {
        let receipt = request.ok().await;

        let state = thread.get("state").ok().await;
        assert_eq!(
            receipt.json()["size_bytes"],
            state.body.len(),
            "{}",
            state.text()
        );
        assert_eq!(receipt.etag(), state.etag());
    }
}

over_both_stores!(
    a_value_set_by_its_key_is_returned_exactly,
    every_kind_of_write_stores_a_value_exactly,
    elements_of_an_array_are_returned_exactly,
    a_merge_patch_sets_values_exactly,
    a_merge_patch_uses_the_last_of_a_repeated_key_and_keeps_others,
    white_space_is_removed_except_in_strings,
    values_may_be_nested_512_levels_deep,
    deeper_nesting_is_refused_as_invalid_json,
    every_legal_key_names_its_own_value,
    a_key_is_the_same_in_a_path_and_in_json_however_it_is_escaped,
    keys_that_urls_cannot_carry_work_in_merges_and_queries,
    the_server_resolves_no_dot_segments,
    illegal_keys_are_refused_everywhere,
    the_size_is_the_length_of_the_state_after_every_write,
);
