//! Tests how separate requests and merges record results and errors.

use serde_json::{Value, json};

use super::{CALL, begin, changed, fence, get, grant, release, settle, take};
use crate::support::client::OwnThread;
use crate::support::server::Server;

/// Maximum size of a result or an error, as compact JSON.
const VALUE_BYTES_MAX: usize = 65_536;
const NESTING_MAX: usize = 512;

/// Returns a JSON string of `bytes` bytes, including its quotes.
fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

fn settlement(effect: &Value, member: &str, value: &str) -> String {
    format!(r#"{{"fence":"{}","{member}":{value}}}"#, fence(effect))
}

/// Returns an operation of a merge.
fn operation(effect: &Value, member: &str, value: &str) -> String {
    format!(
        r#"{{"op":"settle","effect":{},"fence":"{}","{member}":{value}}}"#,
        effect["id"],
        fence(effect)
    )
}

async fn open(thread: &OwnThread, ids: [&str; 2]) -> (String, [Value; 2]) {
    let turn = take(thread).await;
    let [a, b] = ids;
    let effects = [grant(thread, &turn, a).await, grant(thread, &turn, b).await];
    (turn, effects)
}

async fn values_of_up_to_64_kib_are_accepted(server: &Server) {
    let thread = server.client().thread();
    for member in ["result", "error"] {
        let [by_put, by_merge] = ["by_put", "by_merge"].map(|name| format!("{name}_{member}"));
        let (turn, [a, b]) = open(&thread, [&by_put, &by_merge]).await;
        let too_large = text(VALUE_BYTES_MAX + 1);
        let largest = text(VALUE_BYTES_MAX);
        let put = |value: &str| {
            let body = settlement(&a, member, value);
            thread.put(&format!("effects/{by_put}"), &body)
        };
        let merge = |value: &str| thread.merge(&format!("[{}]", operation(&b, member, value)));

        for request in [put(&too_large), merge(&too_large)] {
            let problem = request.refused(413, "value_too_large").await;
            assert_eq!(problem["limit_bytes"], VALUE_BYTES_MAX);
            assert!(problem["operation"].is_null() || problem["operation"] == 0);
        }
        for id in [&by_put, &by_merge] {
            assert_eq!(get(&thread, id).await["state"], "running");
        }
        put(&largest).ok().await;
        merge(&largest).ok().await;
        for id in [&by_put, &by_merge] {
            let recorded = get(&thread, id).await[member].to_string();
            assert_eq!(recorded.len(), VALUE_BYTES_MAX);
            assert_eq!(recorded, largest);
        }
        release(&thread, &turn).await;
    }
}

async fn a_value_is_returned_byte_for_byte(server: &Server) {
    let thread = server.client().thread();
    let (_, [a, b]) = open(&thread, ["a", "b"]).await;
    let around = r#"{"n":1.50,"e":1e400,"u":"\ud800","a":1,"a":2,"nested":"#;
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!("{around}{open}{close}}}")
    };
    // the object around the arrays is one level
    let (deepest, too_deep) = (nested(NESTING_MAX - 1), nested(NESTING_MAX));

    for request in [
        thread.put("effects/a", &settlement(&a, "result", &too_deep)),
        thread.merge(&format!("[{}]", operation(&b, "error", &too_deep))),
    ] {
        request.refused(400, "invalid_json").await;
    }
    let spaced = deepest.replace(',', " , ").replace(':', ": ");
    let settled = thread.put("effects/a", &settlement(&a, "result", &spaced));
    let settled = settled.ok().await.text();
    let merge = thread.merge(&format!("[{}]", operation(&b, "error", &deepest)));
    merge.ok().await;

    let end = format!(r#","result":{deepest},"repeated":false}}"#);
    assert!(settled.ends_with(&end), "{settled}");
    for (id, member) in [("a", "result"), ("b", "error")] {
        let effect = thread.get(&format!("effects/{id}")).ok().await.text();
        let end = format!(r#","{member}":{deepest}}}"#);
        assert!(effect.ends_with(&end), "{effect}");
    }
    // white space does not count, but the text of a number does
    let again = thread.put("effects/a", &settlement(&a, "result", &deepest));
    assert!(again.ok().await.text().ends_with(r#""repeated":true}"#));
    let other = settlement(&a, "result", &deepest.replace("1.50", "1.5"));
    let other = thread.put("effects/a", &other);
    other.refused(409, "effect_settled").await;
    let other = thread.put("effects/a", &settlement(&a, "error", &deepest));
    other.refused(409, "effect_settled").await;
}

async fn a_merge_settles_calls_in_one_step_with_its_writes(server: &Server) {
    let thread = server.client().thread();
    let (turn, [a, b]) = open(&thread, ["a", "b"]).await;
    release(&thread, &turn).await;
    let turn = take(&thread).await;
    let in_doubt = r#"{"op":"settle","effect":"b","error":["lost"]}"#;
    let settles = operation(&a, "result", "1.50");
    let operations = [
        r#"{"op":"set","key":"k","value":1}"#,
        &settles,
        r#"{"op":"append","id":"m1","value":"sent"}"#,
        in_doubt,
        &settles,
        r#"{"op":"push","key":"l","value":1}"#,
    ];
    let operations = format!("[{}]", operations.join(","));
    let merge = || {
        let request = thread.merge(&operations).key("once");
        request.header("x-turn-token", &turn)
    };

    let receipt = merge().ok().await;

    assert_eq!(receipt.version(), 2);
    assert_eq!(
        receipt.json()["results"],
        json!([
            {}, {"state": "done", "repeated": false},
            {"id": "m1", "seq": 1, "repeated": false},
            {"state": "failed", "repeated": false},
            {"state": "done", "repeated": true}, {"length": 1},
        ])
    );
    assert_eq!(thread.state().await, r#"{"k":1,"l":[1]}"#);
    let done = changed(&a, json!({"state": "done", "result": 1.50}));
    assert_eq!(get(&thread, "a").await, done);
    let failed = changed(&b, json!({"state": "failed", "error": ["lost"]}));
    assert_eq!(get(&thread, "b").await, failed);
    let again = merge().ok().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["results"], receipt.json()["results"]);
    let only_settles = thread.merge(&format!("[{settles}]")).ok().await.json();
    assert_eq!(
        (&only_settles["version"], &only_settles["results"]),
        (&json!(3), &json!([{"state": "done", "repeated": true}]))
    );
}

async fn a_merge_with_a_refused_settlement_changes_nothing(server: &Server) {
    let thread = server.client().thread();
    let (turn, [a, b]) = open(&thread, ["a", "b"]).await;
    let result = json!({"fence": fence(&a), "result": 1});
    settle(&thread, "a", &result).ok().await;
    let set = r#"{"op":"set","key":"k","value":1},{"op":"append","value":1}"#;
    let unknown = changed(&b, json!({"id": "c", "fence": fence(&b)}));
    let of_a = changed(&b, json!({"fence": fence(&a)}));
    let twice = [operation(&b, "result", "1"), operation(&b, "result", "2")];

    for (operations, status, code, index) in [
        (operation(&unknown, "result", "1"), 404, "not_found", 2),
        (operation(&of_a, "result", "1"), 409, "effect_lost", 2),
        (operation(&a, "result", "2"), 409, "effect_settled", 2),
        (twice.join(","), 409, "effect_settled", 3),
        (
            r#"{"op":"settle","effect":"b","result":1}"#.to_owned(),
            409,
            "effect_lost",
            2,
        ),
    ] {
        let merge = thread.merge(&format!("[{set},{operations}]"));
        let problem = merge.header("x-turn-token", &turn);
        let problem = problem.refused(status, code).await;
        assert_eq!(problem["operation"], index, "{operations}");
        assert_eq!(status == 409, problem["attempt"] == 1, "{problem}");
    }
    let without_token = thread.merge(r#"[{"op":"settle","effect":"b","result":1}]"#);
    let problem = without_token.refused(400, "invalid_parameter").await;
    assert_eq!(problem["operation"], 0);
    let of_b = format!("[{set},{}]", operation(&b, "result", "1"));
    let lost = thread.merge(&of_b).header("x-turn-token", "turn_1");
    lost.refused(409, "turn_lost").await;
    release(&thread, &turn).await;
    let in_doubt = format!(r#"[{set},{{"op":"settle","effect":"b","result":1}}]"#);
    let by_holder = || thread.merge(&in_doubt).header("x-turn-token", &turn);
    let problem = by_holder().refused(409, "turn_not_held").await;
    assert_eq!(problem["number"], 1);
    assert_eq!(problem["operation"], 2);

    assert_eq!(thread.state().await, "{}");
    let history = thread.get("history").ok().await.json();
    assert_eq!(history["items"], json!([]));
    assert_eq!(get(&thread, "b").await["state"], "in_doubt");
    let absent = server.client().thread();
    let merge = absent.merge(&of_b);
    let problem = merge.refused(404, "not_found").await;
    assert_eq!(problem["operation"], 2);
    assert_eq!(absent.object().await["exists"], false);
}

async fn malformed_settlements_are_refused(server: &Server) {
    let thread = server.client().thread();
    let (turn, [a, _]) = open(&thread, ["a", "b"]).await;
    let fence = fence(&a);
    let members = [
        format!(r#""fence":"{fence}""#),
        format!(r#""fence":"{fence}","result":1,"error":1"#),
        format!(r#""fence":"{}","result":1"#, &fence[1..]),
        format!(r#""fence":"{fence}0","result":1"#),
        format!(
            r#""fence":"{}","result":1"#,
            fence.replace("fence_", "turn_")
        ),
        r#""fence":"","result":1"#.into(),
        r#""fence":null,"result":1"#.into(),
        r#""fence":7,"result":1"#.into(),
        format!(r#""fence":"{fence}","result":1,"attempt":1"#),
    ];

    let neither = thread.put("effects/a", r#"{"result":1}"#);
    neither.refused(400, "invalid_parameter").await;
    for members in &members {
        let put = thread.put("effects/a", &format!("{{{members}}}"));
        put.refused(400, "invalid_parameter").await;
        let operation = format!(r#"{{"op":"settle","effect":"a",{members}}}"#);
        let merge = thread.merge(&format!(r#"[{{"op":"clear"}},{operation}]"#));
        let problem = merge.refused(400, "invalid_operation").await;
        assert_eq!(problem["operation"], 1, "{operation}");
    }
    let valid = format!(r#""fence":"{fence}","result":1"#);
    for effect in [
        "",
        r#""effect":"","#,
        r#""effect":"a b","#,
        r#""effect":7,"#,
    ] {
        let merge = thread.merge(&format!(r#"[{{"op":"settle",{effect}{valid}}}]"#));
        merge.refused(400, "invalid_operation").await;
    }
    for (body, code) in [
        ("[]", "invalid_parameter"),
        ("", "invalid_json"),
        (r#"{"result":"#, "invalid_json"),
    ] {
        thread.put("effects/a", body).refused(400, code).await;
    }
    let put = || thread.put("effects/a", &format!("{{{valid}}}"));
    let twice = put().header("x-turn-token", &turn);
    let twice = twice.header("x-turn-token", &turn);
    twice.refused(400, "invalid_parameter").await;
    let query = thread.put("effects/a?x=1", &format!("{{{valid}}}"));
    query.refused(400, "invalid_parameter").await;
    let again = begin(&thread, &turn, "a", CALL).ok().await.json();
    assert_eq!(again["state"], "running");
    put().ok().await;
}

over_both_stores!(
    values_of_up_to_64_kib_are_accepted,
    a_value_is_returned_byte_for_byte,
    a_merge_settles_calls_in_one_step_with_its_writes,
    a_merge_with_a_refused_settlement_changes_nothing,
    malformed_settlements_are_refused,
);
