use serde_json::{Value, json};

use super::{begin, changed, fence, get, grant, release, settle, take};
use crate::support::client::OwnThread;
use crate::support::server::Server;

const IDS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Begins five calls. The first has a result, and the second has an error.
async fn five_calls(thread: &OwnThread) -> String {
    let turn = take(thread).await;
    for id in IDS {
        let effect = grant(thread, &turn, id).await;
        let end = match id {
            "a" => json!({"fence": fence(&effect), "result": 1}),
            "b" => json!({"fence": fence(&effect), "error": 1}),
            _ => continue,
        };
        settle(thread, id, &end).ok().await;
    }
    turn
}

async fn page(thread: &OwnThread, query: &str) -> (Vec<String>, Option<String>) {
    let page = thread.get(&format!("effects{query}")).ok().await.json();
    let effects = page["effects"].as_array().unwrap().iter();
    let ids = effects.map(|effect| effect["id"].as_str().unwrap().to_owned());
    let cursor = page["next_cursor"].as_str().map(str::to_owned);
    (ids.collect(), cursor)
}

async fn calls_are_listed_newest_first_without_their_results(server: &Server) {
    let thread = server.client().thread();
    let none = thread.get("effects").ok().await.json();
    assert_eq!(none, json!({"effects": [], "next_cursor": null}));
    assert_eq!(thread.object().await["exists"], false);
    five_calls(&thread).await;

    let listed = thread.get("effects").ok().await.json();

    let mut expected = Vec::new();
    for id in IDS.into_iter().rev() {
        let mut effect = changed(&get(&thread, id).await, json!({}));
        for outcome in ["result", "error"] {
            effect.as_object_mut().unwrap().remove(outcome);
        }
        expected.push(effect);
    }
    assert_eq!(listed, json!({"effects": expected, "next_cursor": null}));
    let states: Vec<&Value> = expected.iter().map(|effect| &effect["state"]).collect();
    assert_eq!(states, ["running", "running", "running", "failed", "done"]);
    assert_eq!(thread.head("effects").ok().await.text(), "");
}

async fn a_list_has_pages(server: &Server) {
    let thread = server.client().thread();
    let turn = five_calls(&thread).await;

    let (first, cursor) = page(&thread, "?limit=2").await;
    // calls that begin in the meantime do not move the next pages
    grant(&thread, &turn, "f").await;
    let (second, next) = page(&thread, &format!("?limit=2&cursor={}", cursor.unwrap())).await;
    let (third, last) = page(&thread, &format!("?limit=2&cursor={}", next.unwrap())).await;

    assert_eq!([first, second, third].concat(), ["e", "d", "c", "b", "a"]);
    assert_eq!(last, None);
    let (all, next) = page(&thread, "?limit=6").await;
    assert_eq!((all.len(), next), (6, None));
    let (most, next) = page(&thread, "?limit=5").await;
    assert_eq!((most.len(), next.is_some()), (5, true));
}

async fn a_list_can_have_one_state(server: &Server) {
    let thread = &server.client().thread();
    let turn = five_calls(thread).await;
    let of_state = async |state: &str| page(thread, &format!("?state={state}")).await.0;

    assert_eq!(of_state("done").await, ["a"]);
    assert_eq!(of_state("failed").await, ["b"]);
    assert!(of_state("in_doubt").await.is_empty());
    let (first, cursor) = page(thread, "?state=running&limit=2").await;
    let rest = format!("?state=running&limit=2&cursor={}", cursor.unwrap());
    let (rest, last) = page(thread, &rest).await;
    assert_eq!(
        (first, rest),
        (vec!["e".into(), "d".into()], vec!["c".into()])
    );
    assert_eq!(last, None);
    release(thread, &turn).await;
    assert!(of_state("running").await.is_empty());
    assert_eq!(of_state("in_doubt").await, ["e", "d", "c"]);
}

async fn a_cursor_belongs_to_one_list(server: &Server) {
    let (thread, other) = (server.client().thread(), server.client().thread());
    five_calls(&thread).await;
    five_calls(&other).await;
    let cursor = async |query: &str| page(&thread, query).await.1.unwrap();
    let of_all = cursor("?limit=1").await;
    let of_running = cursor("?state=running&limit=1").await;

    for (thread, query) in [
        (&other, format!("?cursor={of_all}")),
        (&thread, format!("?cursor={of_running}")),
        (&thread, format!("?state=running&cursor={of_all}")),
        (&thread, format!("?state=in_doubt&cursor={of_running}")),
        (&thread, format!("?cursor={}", &of_all[1..])),
        (&thread, "?cursor=abc".into()),
        (&thread, "?cursor=".into()),
    ] {
        let list = thread.get(&format!("effects{query}"));
        list.refused(400, "invalid_cursor").await;
    }
    for query in [
        "?limit=0",
        "?limit=101",
        "?limit=x",
        "?limit=1&limit=1",
        "?state=granted",
        "?state=",
        "?state=Done",
        "?state=done&state=done",
        "?peek=true",
    ] {
        let list = thread.get(&format!("effects{query}"));
        list.refused(400, "invalid_parameter").await;
    }
    // the size of a page may change from page to page
    let (rest, _) = page(&thread, &format!("?limit=100&cursor={of_all}")).await;
    assert_eq!(rest, ["d", "c", "b", "a"]);
}

async fn a_call_that_is_repeated_keeps_its_place(server: &Server) {
    let thread = server.client().thread();
    let turn = five_calls(&thread).await;
    let retry = super::call_with(r#""retry":1"#);

    begin(&thread, &turn, "b", &retry).ok().await;

    assert_eq!(page(&thread, "").await.0, ["e", "d", "c", "b", "a"]);
    let (running, _) = page(&thread, "?state=running").await;
    assert_eq!(running, ["e", "d", "c", "b"]);
}

over_both_stores!(
    calls_are_listed_newest_first_without_their_results,
    a_list_has_pages,
    a_list_can_have_one_state,
    a_cursor_belongs_to_one_list,
    a_call_that_is_repeated_keeps_its_place,
);
