use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::dates::parse_rfc3339;

use super::{App, encoded, ids, refused, unique};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::server::{Backend, Server};
use crate::support::until;

async fn by_cursor(app: &App, user: &str, limit: usize) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app
            .list(user, &format!("limit={limit}&offset=7&{cursor}"))
            .await;
        // the server ignores `offset` only if a cursor is sent, so request the first page again without `offset`
        let page = match cursor.is_empty() {
            true => app.list(user, &format!("limit={limit}")).await,
            false => page,
        };
        all.extend(ids(&page));
        let (time, id) = (&page["nextCursorTimestamp"], &page["nextCursorId"]);
        assert_eq!(time.is_string(), page["hasMore"] == true, "{page}");
        if page["hasMore"] == false {
            assert_eq!((time, id), (&Value::Null, &Value::Null));
            return all;
        }
        let last = page["threads"].as_array().unwrap().last().unwrap();
        assert_eq!((time, id), (&last["lastMessageAt"], &last["id"]));
        let (time, id) = (time.as_str().unwrap(), id.as_str().unwrap());
        cursor = format!("cursorTimestamp={}&cursorId={}", encoded(time), encoded(id));
    }
}

async fn by_offset(app: &App, user: &str, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = app
            .list(user, &format!("limit={limit}&offset={}", all.len()))
            .await;
        all.extend(ids(&page));
        if page["hasMore"] == false {
            return all;
        }
    }
}

async fn threads_are_listed_by_their_newest_messages(server: &Server) {
    let (app, user) = (App::of(server), unique());
    let names: Vec<_> = (0..5).map(|number| format!("{user} {number}")).collect();
    for name in &names {
        app.post(&json!({"id": name, "userId": user})).ok().await;
        // the times of creation, in milliseconds, must differ
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // the first message must be newer than the last thread
    tokio::time::sleep(Duration::from_millis(2)).await;
    for name in [&names[1], &names[3], &names[0]] {
        app.append_message(name, "1", &format!("about {name}\nmore"))
            .await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // changes other than messages do not affect the order
    app.patch(&names[2], &json!({"title": "T"})).ok().await;
    app.at_v1(Method::PUT, &names[4], "/state/k")
        .json("1")
        .ok()
        .await;

    let page = app.list(&user, "").await;

    let expected = [0, 3, 1, 4, 2].map(|at: usize| names[at].clone());
    assert_eq!(ids(&page), expected);
    assert_eq!(
        (&page["total"], &page["hasMore"]),
        (&json!(5), &json!(false))
    );
    for limit in [1, 2, 5, 100] {
        assert_eq!(by_cursor(&app, &user, limit).await, expected);
        assert_eq!(by_offset(&app, &user, limit).await, expected);
    }
    let [first, .., last] = &page["threads"].as_array().unwrap()[..] else {
        panic!("{page}");
    };
    assert_eq!(first["title"], format!("about {}", names[0]));
    assert_eq!(first["messageCount"], 1);
    assert!(first["lastMessageAt"].as_str() > first["createdAt"].as_str());
    assert_eq!(
        (&last["title"], &last["messageCount"]),
        (&json!("T"), &json!(0))
    );
    assert_eq!(last["lastMessageAt"], last["createdAt"]);
    assert!(last["updatedAt"].as_str() > last["createdAt"].as_str());
    assert_eq!(page["threads"][3]["title"], "New conversation");
}

async fn threads_created_at_the_same_time_are_each_listed_once(server: &Server) {
    let (app, user) = (App::of(server), unique());
    let mut names: Vec<_> = (0..80).map(|number| format!("{user}-{number}")).collect();
    let posts = names
        .iter()
        .map(|name| app.post(&json!({"id": name, "userId": user})).ok());
    futures_util::future::join_all(posts).await;
    names.sort();

    for mut listed in [
        by_cursor(&app, &user, 7).await,
        by_offset(&app, &user, 7).await,
        ids(&app.list(&user, "limit=100").await),
    ] {
        listed.sort();
        assert_eq!(listed, names);
    }
    let page = app.list(&user, "limit=100").await;
    let order = page["threads"].as_array().unwrap().iter();
    let order: Vec<_> = order
        .map(|thread| (thread["lastMessageAt"].as_str(), thread["id"].as_str()))
        .collect();
    assert!(order.is_sorted_by(|a, b| a > b));
}

async fn list_parameters_are_validated(server: &Server) {
    let (app, user) = (App::of(server), unique());
    for _ in 0..3 {
        app.post(&json!({"userId": user})).ok().await;
    }

    let beyond = app.list(&user, "offset=10000").await;

    assert_eq!((ids(&beyond).len(), &beyond["total"]), (0, &json!(3)));
    let path = format!("/api/threads?userId={user}");
    for (query, code) in [
        ("offset=10001", "invalid_parameter"),
        ("offset=-1", "invalid_parameter"),
        ("limit=0", "invalid_parameter"),
        ("limit=101", "invalid_parameter"),
        ("limit=1&limit=2", "invalid_parameter"),
        ("cursor=1", "invalid_parameter"),
        ("cursorTimestamp=yesterday&cursorId=a", "invalid_cursor"),
    ] {
        let request = app.ask(Method::GET, &format!("{path}&{query}"));
        refused(request, 400, code).await;
    }
    // a cursor with only one of its two parts is ignored
    for query in ["cursorTimestamp=yesterday", "cursorId=a"] {
        assert_eq!(ids(&app.list(&user, query).await).len(), 3);
    }
}

async fn channels_have_their_own_lists(server: &Server) {
    let (app, key) = (App::of(server), unique());
    let made = app.post(&json!({"channelKey": key})).ok().await.json();
    let name = made["threadId"].as_str().unwrap();

    let listed = app.ask(Method::GET, &format!("/api/threads?channelKey={key}"));

    assert_eq!(ids(&listed.ok().await.json()), [name]);
    let thread = app.at_v1(Method::GET, name, "").ok().await.json();
    assert_eq!(thread["owner"], format!("channel:{key}"));
    // if a request names both a user and a channel, the user takes precedence
    let of_user = app.ask(
        Method::GET,
        &format!("/api/threads?channelKey={key}&userId={key}"),
    );
    assert!(ids(&of_user.ok().await.json()).is_empty());
    let neither = refused(
        app.ask(Method::GET, "/api/threads"),
        400,
        "invalid_parameter",
    )
    .await;
    assert!(
        neither.contains("userId") && neither.contains("channelKey"),
        "{neither}"
    );
}

async fn the_default_title_is_the_users_first_message(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    app.post(&json!({"id": name, "userId": user})).ok().await;
    let answer = json!({"kind": "agent", "result": {"output": []}});
    app.append(&name, "1", answer).await;
    app.append(&name, "2", json!({"kind": "note", "content": "n"}))
        .await;
    let long = format!("\n{}", "many words ".repeat(2_000));
    app.append_message(&name, "3", &long).await;

    let title = "many words ".repeat(7);

    assert_eq!(
        app.list(&user, "").await["threads"][0]["title"],
        title.trim()
    );
    assert_eq!(app.open(&name).await["thread"]["title"], title.trim());
}

async fn listing_does_not_extend_a_threads_lifetime(backend: Backend) {
    let server = Server::start(backend);
    let (app, user) = (App::of(&server), unique());
    let made = app
        .post(&json!({"userId": user, "ttl_seconds": 60}))
        .ok()
        .await
        .json();
    let name = made["threadId"].as_str().unwrap();
    let expires_ms = async || {
        let listed = app.ask(Method::GET, &format!("/v1/threads?owner={user}"));
        let listed = listed.ok().await.json();
        parse_rfc3339(listed["threads"][0]["expires_at"].as_str().unwrap()).unwrap()
    };
    // retry, because the store computes the expiry from two clock readings, and a busy machine may pause in between
    until(async || {
        let before = expires_ms().await;
        // a use extends the lifetime no more than once a second
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        app.list(&user, "").await;
        expires_ms().await <= before + 5
    })
    .await;
    let before = expires_ms().await;
    until(async || {
        app.open(name).await;
        expires_ms().await >= before + 100
    })
    .await;
}

over_both_stores!(
    threads_are_listed_by_their_newest_messages,
    threads_created_at_the_same_time_are_each_listed_once,
    list_parameters_are_validated,
    channels_have_their_own_lists,
    the_default_title_is_the_users_first_message,
);

with_own_servers!(listing_does_not_extend_a_threads_lifetime);
