use serde_json::json;

use crate::support::client::Answer;
use crate::support::server::Server;

fn assert_receipt(answer: &Answer, version: u64, size_bytes: usize) {
    assert_eq!(answer.status, 200);
    let receipt = answer.json();
    assert_eq!(receipt["version"], version);
    assert_eq!(receipt["size_bytes"], size_bytes);
    assert!(answer.etag().starts_with(&format!("\"{version}-")));
}

async fn an_absent_thread_reads_as_empty(server: &Server) {
    let thread = server.client().thread();

    assert_eq!(thread.state().await, "{}");
    assert_eq!(thread.get("keys").ok().await.text(), "[]");
    thread.get("state/k").refused(404, "key_not_found").await;
}

async fn a_value_is_set_and_read(server: &Server) {
    let thread = server.client().thread();

    let first = thread.put("state/a", r#"{"x":[1,2]}"#).ok().await;
    let second = thread.put("state/a", "null").ok().await;

    assert_receipt(&first, 1, r#"{"a":{"x":[1,2]}}"#.len());
    assert_receipt(&second, 2, r#"{"a":null}"#.len());
    let value = thread.get("state/a").ok().await;
    assert_eq!(value.text(), "null");
    assert_eq!(value.header("content-type"), Some("application/json"));
    assert_eq!(value.etag(), second.etag());
}

async fn the_state_is_sorted_by_the_bytes_of_its_keys(server: &Server) {
    let thread = server.client().thread();

    thread
        .put(
            "state",
            r#"{"é":1,"b":2,"a":3,"B":4,"10":5,"9":6,"aa":7,"😀":8}"#,
        )
        .ok()
        .await;

    assert_eq!(
        thread.state().await,
        r#"{"10":5,"9":6,"B":4,"a":3,"aa":7,"b":2,"é":1,"😀":8}"#
    );
    assert_eq!(
        thread.get("keys").ok().await.text(),
        r#"["10","9","B","a","aa","b","é","😀"]"#
    );
}

async fn selected_keys_of_the_state_can_be_read(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":1,"b":2,"c d":3}"#).ok().await;

    for (query, state) in [
        ("key=b", r#"{"b":2}"#),
        ("key=b&key=a", r#"{"a":1,"b":2}"#),
        ("key=b&key=b", r#"{"b":2}"#),
        ("key=c%20d&key=absent", r#"{"c d":3}"#),
        ("key=c+d", r#"{"c d":3}"#),
        ("key=absent", "{}"),
    ] {
        let answer = thread.get(&format!("state?{query}")).ok().await;

        assert_eq!(answer.text(), state, "{query}");
    }
    thread.get("state?key=").refused(400, "invalid_key").await;
    thread
        .get("state?key=%ff")
        .refused(400, "invalid_key")
        .await;
}

async fn replacing_the_state_removes_the_old_keys(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":1,"b":2}"#).ok().await;

    let answer = thread.put("state", r#" { "c" : 3 } "#).ok().await;

    assert_receipt(&answer, 2, r#"{"c":3}"#.len());
    assert_eq!(thread.state().await, r#"{"c":3}"#);
}

async fn the_last_value_of_a_repeated_key_counts(server: &Server) {
    let thread = server.client().thread();

    thread
        .put("state", r#"{"a":1,"b":2,"\u0061":{"x":1,"x":2}}"#)
        .ok()
        .await;
    let replaced = thread.state().await;
    thread
        .merge_patch(r#"{"b":3,"a":null,"a":4,"b":null}"#)
        .ok()
        .await;

    assert_eq!(replaced, r#"{"a":{"x":1,"x":2},"b":2}"#);
    assert_eq!(thread.state().await, r#"{"a":4}"#);
}

async fn a_state_is_an_object(server: &Server) {
    let thread = server.client().thread();

    for body in ["[]", "1", "\"x\"", "null", "true"] {
        thread
            .put("state", body)
            .refused(400, "invalid_parameter")
            .await;
        thread
            .merge_patch(body)
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn deleting_a_key_returns_whether_it_existed(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":1,"b":2}"#).ok().await;

    let existing = thread.delete("state/a").ok().await;
    let absent = thread.delete("state/a").ok().await;

    assert_receipt(&existing, 2, r#"{"b":2}"#.len());
    assert_eq!(existing.json()["deleted"], true);
    assert_receipt(&absent, 3, r#"{"b":2}"#.len());
    assert_eq!(absent.json()["deleted"], false);
    assert_eq!(thread.state().await, r#"{"b":2}"#);
}

async fn a_write_that_changes_nothing_creates_the_thread(server: &Server) {
    let client = server.client();

    let deleted = client.thread().delete("state/k").ok().await;
    let cleared = client.thread().delete("state").ok().await;
    let patched = client.thread().merge_patch("{}").ok().await;

    assert_receipt(&deleted, 1, 2);
    assert_receipt(&cleared, 1, 2);
    assert_receipt(&patched, 1, 2);
}

async fn clearing_keeps_the_thread(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":1,"b":[1,2]}"#).ok().await;

    let answer = thread.delete("state").ok().await;

    assert_receipt(&answer, 2, 2);
    assert_eq!(thread.state().await, "{}");
    let object = thread.object().await;
    assert_eq!(object["exists"], true);
    assert_eq!(object["keys"], 0);
}

async fn operations_run_in_order_as_one_version(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"old":1,"n":5}"#).ok().await;

    let answer = thread
        .merge(
            r#"[{"op":"increment","key":"n"},
                {"op":"clear"},
                {"op":"set","key":"a","value":[1]},
                {"op":"push","key":"a","value":[2]},
                {"op":"push","key":"b","value":null},
                {"op":"increment","key":"n","by":-7},
                {"op":"set","key":"c","value":1},
                {"op":"delete","key":"c"},
                {"op":"delete","key":"old"}]"#,
        )
        .ok()
        .await;

    let state = r#"{"a":[1,[2]],"b":[null],"n":-7}"#;
    assert_receipt(&answer, 2, state.len());
    assert_eq!(thread.state().await, state);
    assert_eq!(
        answer.json()["results"],
        json!([
            {"value": 6}, {}, {}, {"length": 2}, {"length": 1}, {"value": -7}, {},
            {"deleted": true}, {"deleted": false}
        ])
    );
}

async fn a_merge_that_fails_changes_nothing_and_names_the_operation(server: &Server) {
    let thread = server.client().thread();
    thread
        .put("state", r#"{"s":"text","f":1.0,"max":9223372036854775807}"#)
        .ok()
        .await;
    let before = thread.get("state").ok().await;

    for (operation, code) in [
        (r#"{"op":"push","key":"s","value":1}"#, "not_an_array"),
        (r#"{"op":"increment","key":"s"}"#, "not_an_integer"),
        (r#"{"op":"increment","key":"f"}"#, "not_an_integer"),
        (r#"{"op":"increment","key":"max"}"#, "integer_overflow"),
    ] {
        let problem = thread
            .merge(&format!(
                r#"[{{"op":"set","key":"a","value":1}},{{"op":"delete","key":"f2"}},{operation}]"#
            ))
            .refused(409, code)
            .await;

        assert_eq!(problem["operation"], 2, "{operation}");
    }
    let after = thread.get("state").ok().await;
    assert_eq!(after.text(), before.text());
    assert_eq!(after.etag(), before.etag());
}

async fn an_operation_sees_the_effects_of_earlier_operations(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let problem = thread
        .merge(r#"[{"op":"set","key":"k","value":"x"},{"op":"increment","key":"k"}]"#)
        .refused(409, "not_an_integer")
        .await;
    thread
        .merge(r#"[{"op":"delete","key":"k"},{"op":"push","key":"k","value":1}]"#)
        .ok()
        .await;

    assert_eq!(problem["operation"], 1);
    assert_eq!(thread.state().await, r#"{"k":[1]}"#);
}

async fn a_malformed_operation_is_named_by_its_index(server: &Server) {
    let thread = server.client().thread();

    for operation in [
        "{}",
        "1",
        "[]",
        r#"["clear"]"#,
        r#"["set","k",1,1,1]"#,
        r#"["set","k",1]"#,
        r#"{"op":"bogus"}"#,
        r#"{"op":1}"#,
        r#"{"op":"set","key":"k"}"#,
        r#"{"op":"set","value":1}"#,
        r#"{"op":"set","key":1,"value":1}"#,
        r#"{"op":"set","key":"k","value":1,"by":1}"#,
        r#"{"op":"delete"}"#,
        r#"{"op":"delete","key":"k","value":1}"#,
        r#"{"op":"clear","key":"k"}"#,
        r#"{"op":"push","key":"k"}"#,
        r#"{"op":"push","key":"k","value":1,"max_records":0}"#,
        r#"{"op":"push","key":"k","value":1,"max_records":-1}"#,
        r#"{"op":"push","key":"k","value":1,"max_records":1.5}"#,
        r#"{"op":"push","key":"k","value":1,"max_records":"1"}"#,
        r#"{"op":"push","key":"k","value":1,"max_records":1,"maxRecords":1}"#,
        r#"{"op":"increment","key":"k","by":1.5}"#,
        r#"{"op":"increment","key":"k","by":"1"}"#,
        r#"{"op":"increment","key":"k","by":9223372036854775808}"#,
        r#"{"op":"increment","key":"k","value":1}"#,
        r#"{"op":"increment"}"#,
    ] {
        let problem = thread
            .merge(&format!(
                r#"[{{"op":"clear"}},{operation},{{"op":"bogus"}}]"#
            ))
            .refused(400, "invalid_operation")
            .await;

        assert_eq!(problem["operation"], 1, "{operation}");
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn an_illegal_key_of_an_operation_is_named_by_its_index(server: &Server) {
    let thread = server.client().thread();

    for key in [r#""""#, r#""\u0000""#, r#""\u007f""#, r#""\ud800""#] {
        let problem = thread
            .merge(&format!(
                r#"[{{"op":"clear"}},{{"op":"delete","key":{key}}}]"#
            ))
            .refused(400, "invalid_key")
            .await;

        assert_eq!(problem["operation"], 1, "{key}");
    }
}

async fn a_merge_has_a_list_of_one_to_a_thousand_operations(server: &Server) {
    let thread = server.client().thread();
    let many = |n: usize| format!("[{}]", vec![r#"{"op":"increment","key":"n"}"#; n].join(","));

    for body in [
        "{}",
        "[]",
        r#"[[{"op":"clear"}]]"#,
        r#"{"operations":{}}"#,
        r#"{"operations":[{"op":"clear"}],"bogus":1}"#,
    ] {
        thread
            .patch("state", body)
            .refused(400, "invalid_parameter")
            .await;
    }
    for count in [0, 1_001] {
        thread
            .merge(&many(count))
            .refused(400, "invalid_operation")
            .await;
    }
    let answer = thread.merge(&many(1_000)).ok().await;

    assert_eq!(answer.version(), 1);
    assert_eq!(answer.json()["results"][999], json!({"value": 1000}));
    assert_eq!(thread.state().await, r#"{"n":1000}"#);
}

async fn a_merge_patch_follows_the_rfc(server: &Server) {
    let thread = server.client().thread();
    thread
        .put(
            "state",
            r#"{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}"#,
        )
        .ok()
        .await;

    let answer = thread
        .merge_patch(
            r#"{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}"#,
        )
        .ok()
        .await;

    let state = r#"{"author":{"givenName":"John"},"content":"This will be unchanged","phoneNumber":"+01-123-456-7890","tags":["example"],"title":"Hello!"}"#;
    assert_receipt(&answer, 2, state.len());
    assert_eq!(thread.state().await, state);
}

async fn a_merge_patch_stores_no_null_members(server: &Server) {
    let thread = server.client().thread();
    thread
        .put("state", r#"{"a":null,"b":[null],"s":1}"#)
        .ok()
        .await;

    thread
        .merge_patch(
            r#"{"absent":null,"o":{"x":null,"y":{"z":null}},"s":{"t":1,"u":null},"l":[null]}"#,
        )
        .ok()
        .await;

    assert_eq!(
        thread.state().await,
        r#"{"a":null,"b":[null],"l":[null],"o":{"y":{}},"s":{"t":1}}"#
    );
}

async fn a_merge_patch_keeps_other_members_to_the_byte(server: &Server) {
    let thread = server.client().thread();
    thread
        .put(
            "state",
            r#"{"a":{"n":9007199254740993,"f":1.0,"d":1,"d":2,"s":"\ud83d"},"z":1e400}"#,
        )
        .ok()
        .await;

    thread.merge_patch(r#"{"a":{"new":1E5}}"#).ok().await;

    assert_eq!(
        thread.state().await,
        r#"{"a":{"n":9007199254740993,"f":1.0,"d":1,"d":2,"s":"\ud83d","new":1E5},"z":1e400}"#
    );
}

async fn concurrent_merge_patches_all_apply(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/o", "{}").ok().await;

    let patches = (0..16).map(|n| {
        let patch = thread.merge_patch(&format!(r#"{{"o":{{"k{n:02}":{n}}}}}"#));
        tokio::spawn(patch.ok())
    });
    for patch in patches.collect::<Vec<_>>() {
        patch.await.unwrap();
    }

    let value = thread.get("state/o").ok().await;
    assert_eq!(value.json().as_object().unwrap().len(), 16);
    assert!(value.etag().starts_with("\"17-"));
}

async fn head_works_wherever_get_does(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state", r#"{"a":[1,2,3]}"#).ok().await;

    for path in ["", "state", "state/a", "state/a?tail=1", "keys"] {
        let got = thread.get(path).ok().await;
        let head = thread.head(path).ok().await;

        assert_eq!(head.status, 200);
        assert!(head.body.is_empty(), "{path}");
        for name in ["etag", "content-type", "content-length", "x-total-count"] {
            assert_eq!(head.header(name), got.header(name), "{name} of {path}");
        }
    }
    let absent = thread.head("state/absent").send().await;
    assert_eq!(absent.status, 404);
    assert!(absent.body.is_empty());
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        let head = client.request(reqwest::Method::HEAD, path).ok().await;

        assert_eq!(head.status, 200, "{path}");
    }
}

async fn concurrent_pushes_all_apply(server: &Server) {
    let thread = server.client().thread();

    let pushes: Vec<_> = (0..32)
        .map(|n| tokio::spawn(thread.post("state/log/push", &n.to_string()).ok()))
        .collect();
    for push in pushes {
        push.await.unwrap();
    }

    let log = thread.get("state/log").ok().await;
    let mut values: Vec<u64> = serde_json::from_slice(&log.body).unwrap();
    values.sort_unstable();
    assert_eq!(values, (0..32).collect::<Vec<_>>());
    assert!(log.etag().starts_with("\"32-"));
}

async fn a_key_that_is_requested_a_thousand_times_is_returned_once(server: &Server) {
    let thread = server.client().thread();
    let large = format!("\"{}\"", "x".repeat(100_000));
    thread.put("state/a", &large).ok().await;

    let path = format!("state?{}", "key=a&".repeat(1_000));
    let answer = thread.get(&path).ok().await;

    assert_eq!(answer.text(), format!("{{\"a\":{large}}}"));
}

async fn a_delete_with_a_body_that_is_too_large_changes_nothing(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    thread
        .delete("state/k")
        .body(" ".repeat(2_097_153))
        .refused(413, "body_too_large")
        .await;

    assert_eq!(thread.get("state/k").ok().await.text(), "1");
}

over_both_stores!(
    a_key_that_is_requested_a_thousand_times_is_returned_once,
    a_delete_with_a_body_that_is_too_large_changes_nothing,
    an_absent_thread_reads_as_empty,
    a_value_is_set_and_read,
    the_state_is_sorted_by_the_bytes_of_its_keys,
    selected_keys_of_the_state_can_be_read,
    replacing_the_state_removes_the_old_keys,
    the_last_value_of_a_repeated_key_counts,
    a_state_is_an_object,
    deleting_a_key_returns_whether_it_existed,
    a_write_that_changes_nothing_creates_the_thread,
    clearing_keeps_the_thread,
    operations_run_in_order_as_one_version,
    a_merge_that_fails_changes_nothing_and_names_the_operation,
    an_operation_sees_the_effects_of_earlier_operations,
    a_malformed_operation_is_named_by_its_index,
    an_illegal_key_of_an_operation_is_named_by_its_index,
    a_merge_has_a_list_of_one_to_a_thousand_operations,
    a_merge_patch_follows_the_rfc,
    a_merge_patch_stores_no_null_members,
    a_merge_patch_keeps_other_members_to_the_byte,
    concurrent_merge_patches_all_apply,
    head_works_wherever_get_does,
    concurrent_pushes_all_apply,
);
