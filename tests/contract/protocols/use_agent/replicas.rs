use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::json;

use super::{App, ids, unique};
use crate::support::server::{Backend, Server};

async fn listed_once(app: &App, user: &str) -> BTreeSet<String> {
    let (mut all, mut query) = (Vec::new(), String::new());
    loop {
        let page = app.list(user, &format!("limit=9{query}")).await;
        all.extend(ids(&page));
        let Some(time) = page["nextCursorTimestamp"].as_str() else {
            break;
        };
        let id = page["nextCursorId"].as_str().unwrap();
        query = format!("&cursorTimestamp={time}&cursorId={id}");
    }
    let once: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!(once.len(), all.len());
    once
}

#[tokio::test]
async fn threads_created_by_two_replicas_are_listed_by_both_and_by_a_survivor() {
    let first = Server::start(Backend::Redis);
    let second = first.settings().start();
    let (apps, user) = ([App::of(&first), App::of(&second)], unique());
    let posts = (0..80).map(|number| {
        let body = json!({"id": format!("{user}-{number}"), "userId": user});
        apps[number % 2].post(&body).ok()
    });
    join_all(posts).await;
    // send each post again, to the other replica
    let posts = (0..80).map(|number| {
        let body = json!({"id": format!("{user}-{number}"), "userId": user});
        apps[(number + 1) % 2].post(&body).ok()
    });
    for answer in join_all(posts).await {
        assert_eq!(answer.status, 200);
    }

    for app in &apps {
        assert_eq!(listed_once(app, &user).await.len(), 80);
    }
    first.kill();
    assert_eq!(listed_once(&apps[1], &user).await.len(), 80);
    assert_eq!(apps[1].list(&user, "").await["total"], 80);
}
