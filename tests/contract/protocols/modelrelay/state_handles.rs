use std::collections::BTreeSet;
use std::num::NonZeroU64;

use ::modelrelay::{DateTime, ListStateHandlesOptions, StateHandleCreateRequest, Utc, Uuid};
use futures_util::StreamExt as _;
use futures_util::future::{join, join_all};
use futures_util::stream;
use reqwest::Method;

use super::{ask, client_of, get, post, refused};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

fn with_ttl(seconds: u64) -> StateHandleCreateRequest {
    StateHandleCreateRequest {
        ttl_seconds: NonZeroU64::new(seconds),
    }
}

fn page(limit: i32, offset: i32) -> ListStateHandlesOptions {
    ListStateHandlesOptions {
        limit: Some(limit),
        offset: Some(offset),
    }
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

async fn handles_are_created_and_can_be_deleted_twice(server: &Server) {
    let handles = client_of(server).state_handles();

    let kept = handles
        .create(StateHandleCreateRequest { ttl_seconds: None })
        .await
        .unwrap();
    let expiring = handles.create(with_ttl(31_536_000)).await.unwrap();

    assert_eq!(kept.expires_at, None);
    assert_ne!(kept.id, expiring.id);
    assert_eq!(kept.project_id, expiring.project_id);
    let expires_at = time(&expiring.expires_at.unwrap());
    let seconds = (expires_at - time(&expiring.created_at)).num_seconds();
    assert_eq!(seconds, 31_536_000);
    let path = format!("/state-handles/{}", kept.id);
    assert_eq!(
        get(server, &path).ok().await.json()["id"],
        kept.id.to_string()
    );
    for _ in 0..2 {
        handles.delete(&kept.id.to_string()).await.unwrap();
    }
    refused(get(server, &path), 404, "NOT_FOUND").await;
}

async fn an_empty_body_creates_a_handle(server: &Server) {
    for body in ["", "{}", r#"{"ttl_seconds":null}"#] {
        let made = ask(server, Method::POST, "/state-handles").body(body);

        let answer = made.send().await;

        assert_eq!(answer.status, 201);
        assert_eq!(answer.json().get("expires_at"), None);
        assert_eq!(answer.json().get("customer_id"), None);
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(answer.header("x-thread-id"), None);
    }
}

async fn handles_are_paged_newest_first(backend: Backend) {
    let server = Server::start(backend);
    let handles = client_of(&server).state_handles();
    let mut made = Vec::new();
    for _ in 0..5 {
        let request = StateHandleCreateRequest { ttl_seconds: None };
        made.push(handles.create(request).await.unwrap().id);
    }
    handles.delete(&made[2].to_string()).await.unwrap();

    let first = handles.list(page(3, 0)).await.unwrap();
    let offset: i32 = first.next_cursor.as_ref().unwrap().parse().unwrap();
    let second = handles.list(page(3, offset)).await.unwrap();
    let whole = handles
        .list(ListStateHandlesOptions::default())
        .await
        .unwrap();

    let ids = |handles: &[::modelrelay::StateHandleResponse]| -> Vec<Uuid> {
        handles.iter().map(|handle| handle.id).collect()
    };
    assert_eq!(offset, 3);
    assert_eq!(second.next_cursor, None);
    // handles created in the same millisecond are in an arbitrary but stable order
    let paged = [ids(&first.state_handles), ids(&second.state_handles)].concat();
    assert_eq!(paged, ids(&whole.state_handles));
    let paged: BTreeSet<_> = paged.into_iter().collect();
    let remaining = [made[0], made[1], made[3], made[4]];
    assert_eq!(paged, remaining.into_iter().collect());
    let by_cursor = get(&server, "/state-handles?limit=3&cursor=3").ok().await;
    assert_eq!(by_cursor.json()["state_handles"][0]["id"], last_id(&whole));
}

fn last_id(whole: &::modelrelay::StateHandleListResponse) -> String {
    whole.state_handles.last().unwrap().id.to_string()
}

async fn an_expired_handle_is_not_listed(backend: Backend) {
    let server = Server::start(backend);
    let handles = client_of(&server).state_handles();
    let kept = handles.create(with_ttl(1_000)).await.unwrap();
    handles.create(with_ttl(1)).await.unwrap();

    until(async || {
        let listed = handles.list(page(1, 0)).await.unwrap();
        listed.state_handles[0].id == kept.id && listed.next_cursor.is_none()
    })
    .await;
}

async fn concurrent_reads_lose_no_handle_from_the_list(backend: Backend) {
    let server = Server::start(backend);
    let handles = client_of(&server).state_handles();
    let create = async || {
        let request = StateHandleCreateRequest { ttl_seconds: None };
        handles.create(request).await.unwrap().id
    };
    let read = async || {
        // a list removes expired entries
        handles.list(page(100, 0)).await.unwrap();
    };

    let (made, _) = join(
        join_all((0..60).map(|_| create())),
        stream::iter(0..60).for_each_concurrent(8, async |_| read().await),
    )
    .await;

    let listed = handles.list(page(100, 0)).await.unwrap();
    let listed: BTreeSet<_> = listed
        .state_handles
        .iter()
        .map(|handle| handle.id)
        .collect();
    assert_eq!(listed, made.into_iter().collect());
}

async fn extending_a_handle_postpones_its_expiry(server: &Server) {
    let handles = client_of(server).state_handles();
    let handle = handles.create(with_ttl(60)).await.unwrap();
    let path = format!("/state-handles/{}/extend", handle.id);

    let extended = post(server, &path, r#"{"ttl_seconds":3600}"#).ok().await;

    let before = time(&handle.expires_at.unwrap());
    let after = time(extended.json()["expires_at"].as_str().unwrap());
    assert!((after - before).num_seconds() >= 3_500);
    assert_eq!(extended.json()["created_at"], handle.created_at);
    for body in ["{}", r#"{"ttl_seconds":0}"#, r#"{"ttl_seconds":31536001}"#] {
        refused(post(server, &path, body), 400, "VALIDATION_ERROR").await;
    }
    let unknown = format!("/state-handles/{}/extend", Uuid::new_v4());
    let unknown = post(server, &unknown, r#"{"ttl_seconds":60}"#);
    refused(unknown, 404, "NOT_FOUND").await;
}

async fn a_repeated_create_returns_the_same_handle(server: &Server) {
    let key = Uuid::new_v4().to_string();
    for header in ["idempotency-key", "x-modelrelay-request-id"] {
        let create = |body: &'static str| {
            post(server, "/state-handles", body).header(header, format!("{header}{key}"))
        };

        let at_once = join_all((0..8).map(|_| create(r#"{"ttl_seconds":60}"#).ok())).await;
        let spaced = create(r#"{ "ttl_seconds": 60 }"#).ok().await;

        let ids: BTreeSet<_> = at_once.iter().map(|answer| answer.text()).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert!(ids.contains(&spaced.text()));
        refused(create("{}"), 409, "CONFLICT").await;
    }
}

async fn idempotency_keys_are_separate_per_kind_and_api_key(server: &Server) {
    let key = Uuid::new_v4().to_string();
    let by_other = server
        .client()
        .post("/api/v1/state-handles")
        .bearer(API_SECRET)
        .header("idempotency-key", &key);

    let handle = post(server, "/state-handles", "{}").header("idempotency-key", &key);
    let session = post(server, "/sessions", "{}").header("idempotency-key", &key);
    let (handle, session) = (handle.ok().await.json(), session.ok().await.json());
    let other = by_other.ok().await.json();

    assert_ne!(handle["id"], session["id"]);
    assert_ne!(handle["id"], other["id"]);
}

#[tokio::test]
async fn replicas_share_handles_and_idempotency_keys() {
    let one = Server::start(Backend::Redis);
    let two = one.settings().start();
    let create = |server| post(server, "/state-handles", "{}").header("idempotency-key", "k");

    let made = create(&one).ok().await.text();
    let again = create(&two).ok().await.text();
    let listed = get(&two, "/state-handles").ok().await.json();

    assert_eq!(made, again);
    assert_eq!(listed["state_handles"].as_array().unwrap().len(), 1);
}

over_both_stores!(
    handles_are_created_and_can_be_deleted_twice,
    an_empty_body_creates_a_handle,
    extending_a_handle_postpones_its_expiry,
    a_repeated_create_returns_the_same_handle,
    idempotency_keys_are_separate_per_kind_and_api_key,
);

with_own_servers!(
    handles_are_paged_newest_first,
    an_expired_handle_is_not_listed,
    concurrent_reads_lose_no_handle_from_the_list,
);
