use serde_json::json;

use super::{Api, Conversation, ids, message, refused};
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn walk(conversation: &Conversation, query: &str) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut after) = (Vec::new(), 0, String::new());
    loop {
        let page = conversation.list(&format!("{query}{after}")).await;
        pages += 1;
        all.extend(ids(&page));
        if page["has_more"] == false {
            return (all, pages);
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
}

async fn pages_follow_each_other_in_both_directions(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    let mut all: Vec<_> = (0..250).map(|number| format!("i{number:03}")).collect();
    let texts: Vec<_> = all.iter().map(String::as_str).collect();
    conversation.add_messages(&texts).await;

    for (query, pages) in [("limit=100", 3), ("limit=50", 5), ("limit=7", 36), ("", 13)] {
        let ascending = walk(&conversation, &format!("{query}&order=asc")).await;
        assert_eq!(ascending, (all.clone(), pages), "{query}");
    }
    all.reverse();
    for (query, pages) in [("limit=100", 3), ("order=desc&limit=50", 5), ("", 13)] {
        let descending = walk(&conversation, query).await;
        assert_eq!(descending, (all.clone(), pages), "{query}");
    }
}

async fn a_deleted_item_is_still_a_valid_cursor(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    conversation.add_messages(&["a", "b", "c", "d", "e"]).await;
    for id in ["c", "e", "a"] {
        conversation.delete(id).ok().await;
    }

    for (query, expected) in [
        ("order=asc&after=c", &["d"][..]),
        ("after=c", &["b"]),
        ("order=asc&after=a", &["b", "d"]),
        ("after=a", &[]),
        ("order=asc&after=e", &[]),
        ("after=e&limit=1", &["d"]),
    ] {
        assert_eq!(ids(&conversation.list(query).await), expected, "{query}");
    }
    for id in ["b", "d"] {
        conversation.delete(id).ok().await;
    }
    assert_eq!(ids(&conversation.list("order=asc&after=c").await), [""; 0]);
    conversation.add_messages(&["f"]).await;
    assert_eq!(ids(&conversation.list("order=asc&after=c").await), ["f"]);
}

async fn an_unknown_item_is_not_a_valid_cursor(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    for round in 0..2 {
        for after in ["never", "", "%20", "%C3%A9"] {
            let path = format!("/items?after={after}");
            let list = conversation.ask(reqwest::Method::GET, &path);
            let text = refused(list, 404, None, Some("after")).await;
            assert!(!text.is_empty(), "{round}");
        }
        conversation.add_messages(&["a"]).await;
    }
}

async fn a_page_ends_at_2_mib_and_reports_more(server: &Server) {
    let conversation = Api::of(server).create(&json!({})).await;
    for id in ["a", "b", "c"] {
        let mut item = message(id);
        item["content"][0]["text"] = json!("x".repeat(1_500_000));
        conversation.add(&json!([item])).ok().await;
    }

    let page = conversation.list("order=asc&limit=3").await;
    assert_eq!(
        (ids(&page), &page["has_more"]),
        (vec!["a".into()], &json!(true))
    );
    let (all, pages) = walk(&conversation, "order=asc&limit=3").await;
    assert_eq!((all.len(), pages), (3, 3));
}

over_both_stores!(
    pages_follow_each_other_in_both_directions,
    a_deleted_item_is_still_a_valid_cursor,
    an_unknown_item_is_not_a_valid_cursor,
    a_page_ends_at_2_mib_and_reports_more,
);
