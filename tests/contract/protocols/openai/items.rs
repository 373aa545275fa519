use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Api, ids, message, missing, refused};
use crate::http::over_both_stores;
use crate::support::server::Server;

/// The item types that clients can read, each with the prefix of its generated ids.
const KINDS: [(&str, &str); 30] = [
    ("message", "msg_"),
    ("function_call", "fc_"),
    ("function_call_output", "fco_"),
    ("reasoning", "rs_"),
    ("file_search_call", "fs_"),
    ("web_search_call", "ws_"),
    ("computer_call", "cu_"),
    ("computer_call_output", "cuo_"),
    ("code_interpreter_call", "ci_"),
    ("image_generation_call", "ig_"),
    ("local_shell_call", "lsh_"),
    ("local_shell_call_output", "item_"),
    ("shell_call", "sh_"),
    ("shell_call_output", "item_"),
    ("apply_patch_call", "item_"),
    ("apply_patch_call_output", "item_"),
    ("mcp_list_tools", "mcpl_"),
    ("mcp_approval_request", "mcpr_"),
    ("mcp_approval_response", "mcpa_"),
    ("mcp_call", "mcp_"),
    ("custom_tool_call", "ctc_"),
    ("custom_tool_call_output", "ctco_"),
    ("tool_search_call", "item_"),
    ("tool_search_output", "item_"),
    ("compaction", "cmp_"),
    ("additional_tools", "item_"),
    ("program", "item_"),
    ("program_output", "item_"),
    ("of_tomorrow", "item_"),
    ("constructor", "item_"),
];

async fn items_of_all_types_are_returned_unchanged(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let (mut sent, mut added) = (Vec::new(), Vec::new());
    for (kind, _) in KINDS {
        sent.push(json!({
            "type": kind, "role": "user", "content": [{"n": 1}], "status": "in_progress", "x": [null, {"y": []}],
        }));
    }
    for items in sent.chunks(20) {
        let list = conversation.add(&json!(items)).ok().await.json();
        assert_eq!(list["has_more"], false);
        assert_eq!(ids(&list).len(), items.len());
        added.extend(list["data"].as_array().unwrap().clone());
    }

    for (((_, prefix), sent), added) in KINDS.iter().zip(&sent).zip(&added) {
        let id = added["id"].as_str().unwrap();
        assert_eq!(id.len(), prefix.len() + 48);
        assert!(id.starts_with(prefix), "{id}");
        let mut expected = sent.clone();
        expected["id"] = json!(id);
        assert_eq!(added, &expected);
        let path = format!("/items/{id}?include[]=reasoning.encrypted_content");
        let item = conversation.ask(Method::GET, &path).ok().await.json();
        assert_eq!(&item, added);
    }
    let list = conversation
        .list("order=asc&limit=100&include%5B%5D=a&include=b&new=1")
        .await;
    assert_eq!(list["data"].as_array().unwrap(), &added);
}

async fn numbers_and_unknown_members_survive_as_text(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let item = r#"{"type":"x","b":9007199254740993,"a":[1.0,1e400],"b":"\ud800","id":"a"}"#;
    let body = format!(r#"{{"items" : [ {item} ], "extra": 1}}"#);

    let added = conversation
        .ask(Method::POST, "/items")
        .json(&body)
        .ok()
        .await;

    assert!(added.text().contains(item), "{}", added.text());
    let read = conversation.ask(Method::GET, "/items/a").ok().await;
    assert_eq!(read.text(), item);
}

async fn an_item_with_its_own_id_is_added_once(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let both = json!([message("a"), message("b")]);

    conversation.add(&json!([message("a")])).ok().await;
    let again = conversation.add(&both).ok().await.json();

    assert_eq!(ids(&again), ["a", "b"]);
    assert_eq!(ids(&conversation.list("order=asc").await), ["a", "b"]);
    let mut other = both.clone();
    other[0]["id"] = json!("c");
    other[1]["role"] = json!("assistant");
    let code = Some("item_id_reused");
    refused(conversation.add(&other), 400, code, Some("items[1].id")).await;
    assert_eq!(ids(&conversation.list("order=asc").await), ["a", "b"]);
}

async fn equal_messages_without_ids_are_distinct(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let yes = json!([{"role": "user", "content": "yes"}]);

    let first = conversation.add(&yes).ok().await.json();
    let second = conversation
        .add(&yes)
        .header("x-stainless-retry-count", "1");
    let second = second.ok().await.json();

    assert_ne!(first["first_id"], second["first_id"]);
    assert_eq!(
        conversation.list("").await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

async fn one_of_six_concurrent_deletions_succeeds(server: &Server) {
    let conversation = Api::of(server)
        .create(&json!({"metadata": {"a": "b"}}))
        .await;
    conversation.add_messages(&["a", "b", "c"]).await;

    let answers = join_all((0..6).map(|_| conversation.delete("b").send())).await;

    let (done, others): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((done.len(), others.len()), (1, 5));
    assert_eq!(done[0].json(), conversation.object().await);
    for other in others {
        super::refusal(&other, 404, None, None);
    }
    missing(conversation.ask(Method::GET, "/items/b")).await;
    missing(conversation.delete("never")).await;
    missing(conversation.delete("%20")).await;
    assert_eq!(ids(&conversation.list("order=asc").await), ["a", "c"]);
    conversation.add_messages(&["b"]).await;
    assert_eq!(ids(&conversation.list("order=asc").await), ["a", "c", "b"]);
    for id in ["a", "b", "c"] {
        conversation.delete(id).ok().await;
    }
    assert_eq!(ids(&conversation.list("").await), [""; 0]);
}

async fn ids_are_percent_encoded_in_paths(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let id = r#"a/b?%41"\"#;
    let item = json!({"type": "x", "id": id});
    conversation.add(&json!([item, message("z")])).ok().await;

    let path = "a%2Fb%3F%2541%22%5C";
    let read = conversation
        .ask(Method::GET, &format!("/items/{path}"))
        .ok()
        .await;
    assert_eq!(read.json(), item);
    let list = conversation.list(&format!("order=asc&after={path}")).await;
    assert_eq!(ids(&list), ["z"]);
    conversation.delete(path).ok().await;
    missing(conversation.delete(path)).await;
}

async fn values_appended_by_back_ends_are_items(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let body = json!({"items": [{"id": "a", "value": [1]}, {"id": "b", "value": {"type": "x"}}]});
    let append = conversation.at_v1(Method::POST, "/history");
    append.json(&body.to_string()).ok().await;

    let list = conversation.list("order=asc").await;

    let expected: Value = json!([
        {"id": "a", "type": "history_item", "value": [1]},
        {"type": "x", "id": "b"},
    ]);
    assert_eq!(list["data"], expected);
}

over_both_stores!(
    items_of_all_types_are_returned_unchanged,
    numbers_and_unknown_members_survive_as_text,
    an_item_with_its_own_id_is_added_once,
    equal_messages_without_ids_are_distinct,
    one_of_six_concurrent_deletions_succeeds,
    ids_are_percent_encoded_in_paths,
    values_appended_by_back_ends_are_items,
);
