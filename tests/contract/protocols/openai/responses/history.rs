use reqwest::Method;
use serde_json::{Value, json};

use super::{increment_call, kinds, run, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, refusal, refused};
use crate::support::client::new_id;
use crate::support::server::{API_SECRET, Server};
use crate::support::until;
use crate::support::upstream::{Reply, Upstream};

async fn continuing_an_earlier_response_forks_the_conversation(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("One."),
        Reply::text("Two."),
        Reply::calls([increment_call()]),
        Reply::text("Another two."),
        Reply::text("Three."),
        Reply::text("Another three."),
    ]);
    let body = |previous: &Value, text: &str| {
        json!({
            "model": "m",
            "previous_response_id": previous["id"],
            "tools": state_tools(),
            "input": text,
        })
    };
    let first = run(&api, &body(&Value::Null, "One?")).ok().await.json();
    let second = run(&api, &body(&first, "Two?")).ok().await.json();
    let other = || run(&api, &body(&first, "Other?")).header("idempotency-key", "other");

    let forked = other().ok().await.json();
    let third = run(&api, &body(&second, "Three?")).ok().await.json();
    let further = run(&api, &body(&forked, "Further?")).ok().await.json();
    let repeat = other().ok().await;

    assert_eq!(second["conversation"], first["conversation"]);
    assert_eq!(third["conversation"], first["conversation"]);
    assert_ne!(forked["conversation"], first["conversation"]);
    assert_eq!(further["conversation"], forked["conversation"]);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(repeat.json(), forked);
    assert_eq!(upstream.count(), 7);
    // the forked conversation starts with its source's keys, and then changes independently
    assert_eq!(forked["output"][0]["output"], r#"{"ok":true,"value":2}"#);
    let list = async |response: &Value| {
        let conversation = response["conversation"]["id"].as_str().unwrap();
        let items = api.conversation(conversation).list("order=asc").await;
        items["data"].clone()
    };
    let (source, copy) = (list(&first).await, list(&forked).await);
    let whole = ["message", "mcp_call", "message"];
    assert_eq!(kinds(&source), [&whole[..], &["message"; 4]].concat());
    assert_eq!(
        kinds(&copy),
        [&whole[..], &whole[..], &["message"; 2]].concat()
    );
    assert_eq!(
        copy.as_array().unwrap()[..3],
        source.as_array().unwrap()[..3]
    );

    // a response cannot be continued once one of its items has been deleted
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let last = source[2]["id"].as_str().unwrap();
    let path = format!("/conversations/{conversation}/items/{last}");
    api.ask(Method::DELETE, &path).ok().await;
    let continued = run(&api, &body(&first, "Once more?"));
    let name = Some("previous_response_id");
    refused(continued, 400, Some("unsupported_value"), name).await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn the_state_keeps_a_window_of_messages(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    let value = |key: &str| {
        let path = format!("/v1/threads/{id}/state/{key}");
        server.client().get(&path).bearer(API_SECRET)
    };
    let body = |text: &str, key: &str| {
        json!({
            "model": "m",
            "conversation": id,
            "tools": state_tools(),
            "input": text,
            "threadkeep": {"messages": {"key": key, "max_records": 3}},
        })
    };
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("One."),
        Reply::text("Two."),
    ]);

    let first = run(&api, &body("Count.", "messages")).ok().await.json();
    let stored = value("messages").ok().await.json();
    let second = run(&api, &body("Again.", "messages")).ok().await.json();

    let input = api.ask(
        Method::GET,
        &format!("/responses/{}/input_items", first["id"].as_str().unwrap()),
    );
    let question = input.ok().await.json()["data"][0]["id"].clone();
    let reply = &first["output"][1]["id"];
    let [question, reply] = [
        json!({"role": "user", "content": "Count.", "id": question}),
        json!({"role": "assistant", "content": "One.", "id": reply}),
    ];
    assert_eq!(stored, json!([question, reply]));
    let window = value("messages").ok().await.json();
    assert_eq!(window[0], reply);
    assert_eq!(window[1]["content"], "Again.");
    assert_eq!(window[2]["id"], second["output"][0]["id"]);

    // if the state value is not an array, the request is rejected before the upstream is called
    let path = format!("/v1/threads/{id}/state/title");
    let put = |path: &str, json: &str| {
        let request = server.client().request(Method::PUT, path);
        request.bearer(API_SECRET).json(json)
    };
    put(&path, r#""A title""#).ok().await;
    let wrong = run(&api, &body("More.", "title"));
    refused(
        wrong,
        400,
        Some("invalid_value"),
        Some("threadkeep.messages.key"),
    )
    .await;
    assert_eq!(upstream.count(), 3);

    // if the array is full, the request fails only after the response has ended and its items are stored
    let path = format!("/v1/threads/{id}/state/filling");
    let filling = format!(r#""{}""#, "x".repeat(1_048_576 - 700));
    put(&path, &filling).ok().await;
    upstream.script([Reply::text("Too much.".repeat(100))]);
    let full = run(&api, &body("More.", "messages"));
    refused(full, 413, Some("conversation_too_large"), None).await;
    let conversation = api.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    assert_eq!(kinds(&items["data"]).len(), 7);
    assert_eq!(value("messages").ok().await.json(), window);
}

async fn items_of_other_clients_do_not_fork_the_conversation(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script(["one", "two", "three"].map(Reply::text));
    let window = json!({"messages": {"key": "messages"}});
    let body = |previous: &Value, input: &Value| {
        json!({
            "model": "m",
            "previous_response_id": previous["id"],
            "input": input,
            "threadkeep": window,
        })
    };
    let first = run(&api, &body(&Value::Null, &json!("one")))
        .ok()
        .await
        .json();
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let path = format!("/conversations/{conversation}/items");
    let items = json!({"items": [{"type": "message", "role": "user", "content": "aside"}]});
    api.post(&path, &items).ok().await;
    let listed = api.conversation(conversation).list("order=asc").await;

    // input items that the conversation already contains are not stored again
    let again = json!([listed["data"][0], {"role": "user", "content": "two"}]);
    let second = run(&api, &body(&first, &again)).ok().await.json();

    assert_eq!(second["conversation"], first["conversation"]);
    let path = format!(
        "/v1/threads/{}/state/messages",
        conversation.replace("conv_", "thrd_")
    );
    let messages = server
        .client()
        .get(&path)
        .bearer(API_SECRET)
        .ok()
        .await
        .json();
    let contents: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(contents, ["one", "one", "two", "two"]);
    // a request that is rejected for a different reason does not copy the conversation
    let mut wrong = body(&first, &json!("three"));
    wrong["model"] = json!("other");
    refused(
        run(&api, &wrong),
        404,
        Some("model_not_found"),
        Some("model"),
    )
    .await;
}

async fn an_unknown_previous_response_is_reported(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("Kept by nobody.")]);
    let unstored = json!({"model": "m", "input": "hi", "store": false});
    let unstored = run(&api, &unstored).ok().await.json();

    for id in [
        json!(format!("resp_{}", "0".repeat(32))),
        json!("resp_of_another_server"),
        unstored["id"].clone(),
    ] {
        let body = json!({"model": "m", "input": "hi", "previous_response_id": id});
        let answer = run(&api, &body).send().await;
        let code = Some("previous_response_not_found");
        refusal(&answer, 400, code, Some("previous_response_id"));
        let message = answer.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains(id.as_str().unwrap()));
    }
    let long = format!("resp_{}", "0".repeat(1_000));
    let body = json!({"model": "m", "input": "hi", "previous_response_id": long});
    let param = Some("previous_response_id");
    refused(run(&api, &body), 400, Some("invalid_value"), param).await;
    assert_eq!(upstream.count(), 1);
}

async fn a_request_without_input_answers_the_conversation(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script(["One.", "More.", "Two.", "Three."].map(Reply::text));
    let first = run(&api, &json!({"model": "m", "input": "Count."}));
    let first = first.ok().await.json();

    let more = json!({"model": "m", "previous_response_id": first["id"]});
    let more = run(&api, &more).ok().await.json();
    let empty = json!({"model": "m", "previous_response_id": more["id"], "input": []});
    run(&api, &empty).ok().await;
    let last = upstream.requests().pop().unwrap();
    let roles = |message: &Value| message["role"].as_str().unwrap().to_owned();
    let sent_roles: Vec<_> = last.messages().iter().map(roles).collect();
    assert_eq!(sent_roles, ["user", "assistant", "assistant"]);
    // a request without input is rejected, unless another client has already added a message to the conversation
    let conversation = api.create(&json!({})).await;
    let body = json!({"model": "m", "conversation": conversation.id});
    let param = Some("input");
    let missing = Some("missing_required_parameter");
    refused(run(&api, &body), 400, missing, param).await;
    conversation.add_messages(&["msg_hello"]).await;
    run(&api, &body).ok().await;
    let items = conversation.list("order=asc").await;
    assert_eq!(kinds(&items["data"]), ["message"; 2]);

    let unknown_thread = new_id();
    for body in [json!({"model": "m"}), json!({"model": "m", "store": false})] {
        refused(run(&api, &body), 400, missing, param).await;
    }
    let body = json!({"model": "m", "conversation": unknown_thread});
    refused(run(&api, &body), 404, None, None).await;
    let thread = server.client().thread_of(&unknown_thread).object().await;
    assert_eq!(thread["exists"], false);
    assert_eq!(upstream.count(), 4);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_unstored_response_continues_a_response_without_changing_it(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("One."), Reply::text("Two.")]);
    let stored = |previous: &Value, input: &str| json!({"model": "m", "previous_response_id": previous["id"], "input": input, "tools": state_tools()});
    let aside = |previous: &Value| {
        let mut body = stored(previous, "Aside?");
        body["store"] = json!(false);
        run(&api, &body).header("idempotency-key", "aside")
    };
    let first = run(&api, &stored(&Value::Null, "1")).ok().await.json();
    let second = run(&api, &stored(&first, "2")).ok().await.json();
    let conversation = second["conversation"]["id"].as_str().unwrap();
    let conversation = api.conversation(conversation);
    let before = conversation.list("order=asc").await;

    upstream.script([Reply::calls([increment_call()]), Reply::text("Aside.")]);
    let answer = aside(&first).ok().await.json();
    let sent = upstream.requests().pop().unwrap();
    let again = aside(&first).ok().await;

    // the upstream receives the items up to and including the first response, the input, and the call with its result
    assert_eq!(sent.messages().len(), 5, "{:?}", sent.messages());
    assert_eq!(sent.user_text(), "Aside?");
    assert_eq!(answer["conversation"], Value::Null);
    assert_eq!(answer["previous_response_id"], first["id"]);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(conversation.list("order=asc").await, before);
    upstream.script([Reply::calls([increment_call()]), Reply::text("Three.")]);
    let third = run(&api, &stored(&second, "3")).ok().await.json();
    assert_eq!(third["conversation"], second["conversation"]);
    // the response that was not stored also incremented the key, but that increment was undone
    assert_eq!(third["output"][0]["output"], r#"{"ok":true,"value":1}"#);

    // call outputs are checked as in a stored conversation
    let body = json!({
        "model": "m", "previous_response_id": first["id"], "store": false,
        "input": [{"type": "function_call_output", "call_id": "call_unknown", "output": "x"}],
    });
    let param = Some("input[0].call_id");
    refused(run(&api, &body), 400, Some("invalid_value"), param).await;
    // a response whose items were deleted cannot be continued
    let last = before["data"][1]["id"].as_str().unwrap();
    conversation.delete(last).ok().await;
    let mut body = stored(&first, "Once more?");
    body["store"] = json!(false);
    let param = Some("previous_response_id");
    refused(run(&api, &body), 400, Some("unsupported_value"), param).await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_running_response_cannot_be_continued(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let gate = upstream.hold();
    upstream.script([Reply::text("One."), Reply::text("Two.")]);
    let running = json!({"model": "m", "input": "1", "background": true});
    let running = run(&api, &running).ok().await.json();
    gate.waiting(1).await;
    let body = json!({
        "model": "m", "previous_response_id": running["id"], "store": false, "input": "2",
    });

    let locked = run(&api, &body).send().await;

    let error = &locked.json()["error"];
    assert_eq!(
        (locked.status, &error["code"]),
        (400, &json!("conversation_locked")),
        "{error}"
    );
    assert_eq!(error["response_id"], running["id"]);
    gate.open();
    let path = format!("/responses/{}", running["id"].as_str().unwrap());
    until(async || {
        let read = api.ask(Method::GET, &path).ok().await.json();
        read["status"] == "completed"
    })
    .await;
    run(&api, &body).ok().await;
    assert_eq!(upstream.faults(), [""; 0]);
}

over_both_stores! {
    an_unstored_response_continues_a_response_without_changing_it,
    a_running_response_cannot_be_continued,
    an_unknown_previous_response_is_reported,
    a_request_without_input_answers_the_conversation,
    continuing_an_earlier_response_forks_the_conversation,
    the_state_keeps_a_window_of_messages,
    items_of_other_clients_do_not_fork_the_conversation,
}
