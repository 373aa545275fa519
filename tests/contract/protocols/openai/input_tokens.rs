use serde_json::{Value, json};

use super::kinds::with_kinds;
use super::{Api, missing, refused};
use crate::http::over_both_stores;
use crate::support::client::new_id;
use crate::support::server::Server;
use crate::support::upstream::{Reply, Upstream};

const COUNTS: [(&str, &str); 2] = [
    ("openai-responses", "/v1/responses/input_tokens"),
    ("anthropic", "/v1/messages/count_tokens"),
];

async fn counting() -> Upstream {
    let upstream = Upstream::start().await;
    for (_, path) in COUNTS {
        upstream.serve(path, json!({"input_tokens": 11}));
    }
    upstream
}

fn function() -> Value {
    json!({"type": "function", "name": "look", "parameters": {"type": "object"}})
}

async fn the_models_upstream_counts_tokens(server: &Server) {
    let upstream = counting().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for (kind, path) in COUNTS {
        let body = json!({
            "model": kind, "input": "How many?", "instructions": "Be brief.", "tools": [function()],
            "max_output_tokens": 5, "temperature": 0.5, "store": true,
        });

        let counted = api.post("/responses/input_tokens", &body).ok().await;

        let expected = json!({"object": "response.input_tokens", "input_tokens": 11});
        assert_eq!(counted.json(), expected, "{kind}");
        let (called, sent) = upstream.operations().pop().unwrap();
        assert_eq!(called, path);
        assert_eq!(sent["model"], kind);
        let text = sent.to_string();
        for part in ["How many?", "Be brief.", "look"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        for field in [
            "stream",
            "store",
            "max_tokens",
            "max_output_tokens",
            "temperature",
        ] {
            assert!(sent.get(field).is_none(), "{field} in {text}");
        }
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn the_conversation_is_counted_too(server: &Server) {
    let upstream = counting().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script([Reply::text("One."), Reply::text("Two.")]);
    let mut responses = Vec::new();
    for input in ["first", "second"] {
        let body = json!({"model": "anthropic", "conversation": id, "input": input});
        responses.push(api.post("/responses", &body).ok().await.json());
    }
    for (more, has_second) in [
        (json!({"conversation": id}), true),
        (json!({"conversation": id, "input": "third"}), true),
        (json!({"conversation": responses[0]["conversation"]}), true),
        (json!({"previous_response_id": responses[0]["id"]}), false),
        (json!({"previous_response_id": responses[1]["id"]}), true),
    ] {
        for (kind, _) in COUNTS {
            let mut body = more.clone();
            body["model"] = json!(kind);
            api.post("/responses/input_tokens", &body).ok().await;

            let (_, sent) = upstream.operations().pop().unwrap();
            let sent = sent.to_string();
            assert!(sent.contains("first") && sent.contains("One."), "{sent}");
            assert_eq!(sent.contains("second"), has_second, "{sent}");
            assert_eq!(
                sent.contains("third"),
                more.get("input").is_some(),
                "{sent}"
            );
        }
    }
    let unknown =
        json!({"model": "anthropic", "conversation": "conv_00000000000000000000000000000000"});
    missing(api.post("/responses/input_tokens", &unknown)).await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_count_is_never_estimated(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    // upstreams of these kinds have no operation that counts tokens
    for kind in ["openai-chat", "openai-responses", "anthropic"] {
        let body = json!({"model": kind, "input": "How many?"});
        let request = api.post("/responses/input_tokens", &body);
        refused(request, 400, Some("unsupported_value"), Some("model")).await;
    }
    for (body, code, param) in [
        (json!({"input": "a"}), "missing_required_parameter", "model"),
        (
            json!({"model": "anthropic"}),
            "missing_required_parameter",
            "input",
        ),
    ] {
        let request = api.post("/responses/input_tokens", &body);
        refused(request, 400, Some(code), Some(param)).await;
    }
    upstream.serve("/v1/messages/count_tokens", json!({"input_tokens": "many"}));
    let body = json!({"model": "anthropic", "input": "a"});
    let request = api.post("/responses/input_tokens", &body);
    refused(request, 502, Some("upstream_malformed"), None).await;
}

over_both_stores! {
    the_models_upstream_counts_tokens,
    the_conversation_is_counted_too,
    a_count_is_never_estimated,
}
