use reqwest::Method;
use serde_json::{Value, json};

use super::{App, ids, refusal, refused, thread_id_for, unique};
use crate::http::over_both_stores;
use crate::support::client::new_id;
use crate::support::server::Server;

async fn a_thread_without_an_id_gets_a_uuid(server: &Server) {
    let (app, user) = (App::of(server), unique());

    let made = app
        .post(&json!({"userId": user, "title": "Hello"}))
        .send()
        .await;

    assert_eq!(made.status, 201, "{}", made.text());
    assert!(made.header("x-session-id").is_some());
    let made = made.json();
    let name = made["threadId"].as_str().unwrap();
    assert_eq!(name.len(), 36);
    assert_eq!(made, json!({"threadId": name, "title": "Hello"}));
    let thread = app.at_v1(Method::GET, name, "").ok().await.json();
    assert_eq!(thread["owner"], user.as_str());
    assert_eq!(thread["ttl_seconds"], 2_592_000);
    assert_eq!(
        thread["metadata"],
        json!({"agentkit": {"id": name, "title": "Hello"}})
    );
    assert_eq!(ids(&app.list(&user, "").await), [name]);
}

async fn a_name_and_its_thread_id_refer_to_the_same_thread(server: &Server) {
    let (app, user) = (App::of(server), unique());
    for name in [
        new_id(),
        format!("a/b ü?%2F#{user}"),
        format!("{user}{}", "x".repeat(200)),
    ] {
        let made = app
            .post(&json!({"id": name, "userId": user}))
            .ok()
            .await
            .json();
        assert_eq!(made, json!({"threadId": name, "title": "New conversation"}));
        let id = match name.starts_with("thrd_") {
            true => name.clone(),
            false => thread_id_for(&name),
        };
        for shown in [app.open(&name).await, app.open(&id).await] {
            assert_eq!(shown["thread"]["id"], name.as_str());
            assert_eq!(shown["messages"], json!([]));
        }
        assert_eq!(
            app.list(&user, "limit=1").await["threads"][0]["id"],
            name.as_str()
        );
    }
}

async fn an_existing_thread_is_completed_and_otherwise_unchanged(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    // `AgentKit`'s history adapter creates threads like this, without an owner
    let body = json!({"id": thread_id_for(&name), "metadata": {"a": 1}});
    let made = app.ask(Method::POST, "/v1/threads");
    made.json(&body.to_string()).ok().await;
    app.append_message(&name, "1", "What is\nthis?").await;

    let first = json!({"id": name, "userId": user, "ttl_seconds": 60});
    let found = app.post(&first).send().await;
    assert_eq!(found.status, 200, "{}", found.text());
    assert_eq!(found.json(), json!({"threadId": name, "title": "What is"}));
    let titled = app
        .post(&json!({"id": name, "userId": user, "title": "T"}))
        .send()
        .await;
    assert_eq!(
        (titled.status, titled.json()["title"].clone()),
        (200, json!("T"))
    );
    let again = json!({"id": name, "userId": user, "title": "U", "metadata": {"a": 2}});
    let again = app.post(&again).send().await;
    assert_eq!(
        (again.status, again.json()["title"].clone()),
        (200, json!("T"))
    );

    let thread = app.at_v1(Method::GET, &name, "").ok().await.json();
    assert_eq!(thread["owner"], user.as_str());
    assert_eq!(thread["version"], 3, "the last request changed nothing");
    assert_eq!(thread["ttl_seconds"], 3_600);
    assert_eq!(
        thread["metadata"],
        json!({"a": 1, "agentkit": {"id": name, "title": "T"}})
    );
    let other = app.post(&json!({"id": name, "userId": unique()}));
    refused(other, 409, "thread_exists").await;
    assert_eq!(ids(&app.list(&user, "").await), [name]);
}

async fn one_of_many_concurrent_requests_creates_the_thread(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    let requests = (0..16).map(|number| {
        let body = json!({"id": name, "userId": user, "title": format!("T{number}")});
        app.post(&body).send()
    });

    let answers = futures_util::future::join_all(requests).await;

    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 201).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        15,
        "{statuses:?}"
    );
    let titles = answers.iter().map(|answer| answer.json()["title"].clone());
    assert_eq!(
        titles.collect::<Vec<Value>>(),
        vec![answers[0].json()["title"].clone(); 16]
    );
}

async fn a_repeat_returns_the_first_answer(server: &Server) {
    let (app, user) = (App::of(server), unique());
    let key = unique();
    let post = |body: &Value| app.post(body).header("idempotency-key", &key);
    let body = json!({"userId": user, "title": "One"});

    let first = post(&body).send().await;
    let again = post(&body).send().await;

    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.json(), again.json());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = post(&json!({"userId": user, "title": "Two"})).send().await;
    refusal(&other, 422, "idempotency_key_reused");
    assert_eq!(app.list(&user, "").await["total"], 1);

    let name = first.json()["threadId"].as_str().unwrap().to_owned();
    let key = unique();
    let found = json!({"id": name, "userId": user});
    for replayed in [None, Some("true")] {
        let found = app
            .post(&found)
            .header("idempotency-key", &key)
            .send()
            .await;
        assert_eq!(
            (found.status, found.header("idempotency-replayed")),
            (200, replayed)
        );
        assert_eq!(found.json(), first.json());
    }
    let patch = |title: &str| {
        let patch = app.patch(&name, &json!({"title": title}));
        patch.header("idempotency-key", "patch")
    };
    patch("Three").ok().await;
    app.patch(&name, &json!({"title": "Four"})).ok().await;
    let again = patch("Three").ok().await;
    assert_eq!(again.json(), json!({"success": true, "title": "Three"}));
    assert_eq!(app.open(&name).await["thread"]["title"], "Four");
    refusal(&patch("Five").send().await, 422, "idempotency_key_reused");
}

async fn titles_and_metadata_can_be_changed(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    let body = json!({"id": name, "userId": user, "title": "T", "metadata": {"a": 1, "b": null}});
    app.post(&body).ok().await;

    let patched = app.patch(
        &name,
        &json!({"title": "U", "metadata": {"a": null, "c": {"d": 1}}, "other": 1}),
    );
    assert_eq!(
        patched.ok().await.json(),
        json!({"success": true, "title": "U"})
    );
    let metadata = app.at_v1(Method::GET, &name, "").ok().await.json()["metadata"].clone();
    assert_eq!(
        metadata,
        json!({"b": null, "c": {"d": 1}, "agentkit": {"id": name, "title": "U"}})
    );
    app.append_message(&name, "1", "said first").await;
    // `null` leaves the title unchanged; an empty title removes it
    for (title, shown) in [
        (json!(null), "U"),
        (json!("é".repeat(200)), &*"é".repeat(200)),
        (json!(""), "said first"),
    ] {
        let patched = app.patch(&name, &json!({"title": title})).ok().await.json();
        assert_eq!(patched["title"], shown);
    }
    for body in [
        json!({"title": "é".repeat(201)}),
        json!({"title": 1}),
        json!({"metadata": []}),
        json!([]),
    ] {
        refused(app.patch(&name, &body), 400, "invalid_parameter").await;
    }
    let large = json!({"metadata": {"x": "x".repeat(16_384)}});
    refused(app.patch(&name, &large), 413, "metadata_too_large").await;
    let missing = app.patch(&unique(), &json!({"title": "T"}));
    let text = refused(missing, 404, "not_found").await;
    assert_eq!(text, "There is no such thread");
}

async fn a_deleted_thread_stays_deleted(server: &Server) {
    let (app, user, name) = (App::of(server), unique(), unique());
    let body = json!({"id": name, "userId": user});
    app.post(&body).ok().await;
    app.append_message(&name, "1", "hello").await;

    for _ in 0..2 {
        let deleted = app.thread(Method::DELETE, &name).send().await;
        assert_eq!((deleted.status, deleted.text().len()), (204, 0));
    }

    // a message that arrives after the thread has ended
    let late = json!({"items": [{"id": "2", "value": 1}]}).to_string();
    let late = app.at_v1(Method::POST, &name, "/history").json(&late);
    late.refused(410, "thread_destroyed").await;
    refused(app.post(&body), 410, "thread_destroyed").await;
    refused(
        app.patch(&name, &json!({"title": "T"})),
        410,
        "thread_destroyed",
    )
    .await;
    refused(app.thread(Method::GET, &name), 404, "not_found").await;
    let list = app.list(&user, "").await;
    assert_eq!((ids(&list).len(), &list["total"]), (0, &json!(0)));
    let unknown = app.thread(Method::DELETE, &unique()).send().await;
    assert_eq!(unknown.status, 204);
}

async fn lenient_bodies_are_accepted_and_invalid_ones_rejected(server: &Server) {
    let (app, user) = (App::of(server), unique());
    let lenient = json!({
        "userId": user, "channelKey": null, "title": null, "metadata": null, "ttl_seconds": 60, "mine": {"a": 1}
    });
    let made = app.post(&lenient).ok().await.json();
    assert_eq!(made["title"], "New conversation");
    let thread = app
        .at_v1(Method::GET, made["threadId"].as_str().unwrap(), "")
        .ok()
        .await
        .json();
    assert_eq!(thread["ttl_seconds"], 60);

    for (body, code) in [
        (json!({"userId": user, "id": ""}), "invalid_thread_id"),
        (json!({"userId": user, "id": "a\nb"}), "invalid_thread_id"),
        (
            json!({"userId": user, "id": "x".repeat(257)}),
            "invalid_thread_id",
        ),
        (json!({"userId": user, "id": 7}), "invalid_parameter"),
        (
            json!({"userId": user, "title": "x".repeat(201)}),
            "invalid_parameter",
        ),
        (
            json!({"userId": user, "ttl_seconds": 59}),
            "invalid_parameter",
        ),
        (
            json!({"userId": user, "metadata": "x"}),
            "invalid_parameter",
        ),
        (json!({"userId": ""}), "invalid_parameter"),
        (json!({"userId": "channel:a"}), "invalid_parameter"),
        (json!({"userId": "x".repeat(257)}), "invalid_parameter"),
        (json!({"channelKey": ""}), "invalid_parameter"),
        (json!({"channelKey": "x".repeat(249)}), "invalid_parameter"),
        (json!({}), "invalid_parameter"),
        (json!([]), "invalid_parameter"),
    ] {
        refused(app.post(&body), 400, code).await;
    }
    let broken = app.ask(Method::POST, "/api/threads").json("{\"userId\":");
    refused(broken, 400, "invalid_json").await;
    let large = app.post(&json!({"userId": user, "metadata": {"x": "x".repeat(16_384)}}));
    refused(large, 413, "metadata_too_large").await;
    assert_eq!(app.list(&user, "").await["total"], 1);
}

over_both_stores!(
    a_thread_without_an_id_gets_a_uuid,
    a_name_and_its_thread_id_refer_to_the_same_thread,
    an_existing_thread_is_completed_and_otherwise_unchanged,
    one_of_many_concurrent_requests_creates_the_thread,
    a_repeat_returns_the_first_answer,
    titles_and_metadata_can_be_changed,
    a_deleted_thread_stays_deleted,
    lenient_bodies_are_accepted_and_invalid_ones_rejected,
);
