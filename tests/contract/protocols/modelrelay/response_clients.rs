use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::modelrelay::{
    AgentOptions, OutputFormat, ResponseBuilder, StopReason, StreamEventKind, Tool, ToolBuilder,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{api_error, client_of};
use crate::http::over_both_stores;
use crate::protocols::openai::responses::{increment_call, with_models};
use crate::support::server::Server;
use crate::support::upstream::{Call, Reply, Upstream};

fn prompt(text: &str) -> ResponseBuilder {
    ResponseBuilder::new()
        .model("m")
        .system("Be brief.")
        .user(text)
}

fn tools(names: &[&str]) -> Vec<Tool> {
    let parameters = json!({"type": "object"});
    let tool = |name: &&str| Tool::function(*name, None, Some(parameters.clone()));
    names.iter().map(tool).collect()
}

async fn whole_and_collected_answers_are_equal(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let responses = client_of(&server).responses();
    let replies = || {
        let search = Call::new("fs_search", "{}").id("c-1");
        [
            Reply::text("One moment. ").and_calls([increment_call()]),
            Reply::text("Look.").and_calls([search]),
        ]
    };
    upstream.script(replies());
    upstream.script(replies());
    let request = || prompt("Count.").tools(tools(&["kv_increment", "fs.search"]));

    let whole = request().request_id("r-1").send(&responses).await.unwrap();
    let stream = request()
        .request_id("r-2")
        .stream(&responses)
        .await
        .unwrap();
    let collected = stream.collect().await.unwrap();

    for answer in [&whole, &collected] {
        assert_eq!(answer.text(), "One moment. Look.");
        assert_eq!(answer.stop_reason, Some(StopReason::ToolCalls));
        let calls = ::modelrelay::get_all_tool_calls_from_response(answer);
        assert_eq!(calls.len(), 1, "{answer:?}");
        assert_eq!(calls[0].id, "c-1");
        assert_eq!(calls[0].function.as_ref().unwrap().name, "fs.search");
        assert!(answer.id.starts_with("resp_"));
        assert!(answer.usage.total_tokens > 0);
    }
    assert_eq!(whole.output, collected.output);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_stream_has_events_that_the_client_knows(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let responses = client_of(&server).responses();
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("You have one, schön."),
    ]);

    let request = prompt("Count.").tools(tools(&["kv_increment"]));
    let stream = request.stream(&responses).await.unwrap();
    let events: Vec<_> = stream.map(Result::unwrap).collect::<Vec<_>>().await;

    let kinds: Vec<_> = events.iter().map(|event| event.kind.clone()).collect();
    assert_eq!(kinds[0], StreamEventKind::MessageStart);
    assert_eq!(kinds[1], StreamEventKind::ToolUseStop);
    assert_eq!(*kinds.last().unwrap(), StreamEventKind::MessageStop);
    assert_eq!(events[1].tool_result, Some(json!({"ok": true, "value": 1})));
    let deltas = events
        .iter()
        .filter(|event| event.kind == StreamEventKind::MessageDelta);
    let text: String = deltas
        .filter_map(|event| event.text_delta.clone())
        .collect();
    assert_eq!(text, "You have one, schön.");
}

async fn a_document_is_read_from_a_stream_and_from_a_whole_answer(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let responses = client_of(&server).responses();
    let document = r#"{"city":"Oslo"}"#;
    upstream.script([Reply::text(document), Reply::text(document)]);
    let format = OutputFormat::json_schema("trip", json!({"type": "object"}));
    let request = || prompt("Plan.").output_format(format.clone());

    let whole = request().send(&responses).await.unwrap();
    let stream = request().stream_json::<Value>(&responses).await.unwrap();
    let streamed = stream.collect().await.unwrap();

    assert_eq!(whole.text(), document);
    assert_eq!(streamed, json!({"city": "Oslo"}));
}

async fn the_clients_loop_runs_its_own_tools_alongside_the_servers(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let write = Call::new("kv_write", r#"{"key":"a","value":"x"}"#);
    upstream.script([
        Reply::calls([write, Call::new("look", r#"{"at":"sea"}"#).id("c-1")]),
        Reply::text("The sea is calm."),
    ]);
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let parameters = Some(json!({"type": "object"}));
    let look = ::modelrelay::sync_handler(move |arguments, _| {
        assert_eq!(arguments["at"], "sea");
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(json!({"sea": "calm"}))
    });
    let server_tool = ::modelrelay::sync_handler(|_, _| panic!("the server runs this"));
    let tools = ToolBuilder::new()
        .add_raw("look", "Looks.", parameters.clone(), look)
        .add_raw("kv_write", "Writes.", parameters, server_tool);

    let options = AgentOptions::new(tools, "How is the sea?");
    let result = client_of(&server).agent("m", options).await.unwrap();

    assert_eq!(result.output, "The sea is calm.");
    assert_eq!((result.usage.llm_calls, result.usage.tool_calls), (2, 1));
    assert_eq!(looks.load(Ordering::Relaxed), 1);
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.results(), [r#"{"sea":"calm"}"#]);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn errors_map_to_the_clients_error_types(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let responses = client_of(&server).responses();
    upstream.script([Reply::status(429).retry_after(3), Reply::status(500)]);

    let limited = api_error(prompt("Hi.").send(&responses).await);
    let format = OutputFormat::json_schema("trip", json!({"type": "object"}));
    let broken = prompt("Hi.").output_format(format);
    let broken = broken.stream_json::<Value>(&responses).await.unwrap();
    let broken = api_error(broken.collect().await);
    let unknown = ResponseBuilder::new().model("other").user("Hi.");
    let unknown = api_error(unknown.send(&responses).await);

    assert!(limited.is_rate_limit(), "{limited:?}");
    assert_eq!((broken.status, broken.is_unavailable()), (502, true));
    assert!(unknown.is_not_found(), "{unknown:?}");
}

over_both_stores! {
    whole_and_collected_answers_are_equal,
    a_stream_has_events_that_the_client_knows,
    a_document_is_read_from_a_stream_and_from_a_whole_answer,
    the_clients_loop_runs_its_own_tools_alongside_the_servers,
    errors_map_to_the_clients_error_types,
}
