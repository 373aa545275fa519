//! Kills replicas while they move a thread to a different id or import a thread, and checks what other replicas find.

use std::sync::Arc;

use actix_web::http::Method;
use serde_json::{Value, json};
use threadkeep_events::{EventSettings, Events};
use threadkeep_http::Api;
use threadkeep_webhooks::WebhookSettings;

use crate::conformance::room::Room;
use crate::in_process;
use crate::killing::{self, Deployment, cuts};
use crate::support::client::new_id;

const OWNER: &str = "ann";

struct Replica(Api);

impl killing::Replica for Replica {
    const CHANGES: &'static [&'static str] = &["EVALSHA"];

    fn start(room: &Room) -> Self {
        let events = Events::start(Arc::clone(&room.backend), EventSettings::default());
        Self(room.api(events, WebhookSettings::default()))
    }
}

impl Deployment {
    fn prepared_keys_expire(&self) -> bool {
        let mut connection = self.redis.connection();
        let keys: Vec<String> = ::redis::cmd("KEYS")
            .arg(format!("{}:*}}:m:*", self.prefix))
            .query(&mut connection)
            .unwrap();
        keys.iter().all(|key| {
            let ttl_ms: i64 = ::redis::cmd("PTTL")
                .arg(key)
                .query(&mut connection)
                .unwrap();
            // -2: already expired
            ttl_ms == -2 || (0..=60_000).contains(&ttl_ms)
        })
    }
}

impl Replica {
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: &str,
        key: Option<&str>,
    ) -> (u16, String) {
        in_process::send(&self.0, method, path, body, key).await
    }

    async fn ok(&self, method: Method, path: &str, body: &str) -> String {
        let (status, body) = self.send(method, path, body, None).await;
        assert!((200..300).contains(&status), "{path}: {status} {body}");
        body
    }

    async fn create(&self) -> String {
        let state = json!({"list": vec!["x".repeat(100); 100], "k": 1});
        let body = json!({"owner": OWNER, "state": state, "metadata": {"a": 1}}).to_string();
        let thread = self.ok(Method::POST, "/v1/threads", &body).await;
        let id = id_of(&thread);
        let path = |below: &str| format!("/v1/threads/{id}/{below}");
        for _ in 0..2 {
            self.ok(Method::POST, &path("checkpoints"), "{}").await;
        }
        let items = (1..4).map(|number| json!({"id": number.to_string(), "value": number}));
        let items = json!({"items": items.collect::<Vec<_>>()}).to_string();
        self.ok(Method::POST, &path("history"), &items).await;
        self.ok(Method::DELETE, &path("history/2"), "").await;
        id
    }

    async fn exists(&self, id: &str) -> bool {
        let thread = self.ok(Method::GET, &format!("/v1/threads/{id}"), "").await;
        value(&thread)["exists"] == true
    }

    async fn content(&self, id: &str) -> String {
        let path = format!("/v1/threads/{id}/export");
        content(&self.ok(Method::GET, &path, "").await, id)
    }

    async fn owned(&self) -> Vec<String> {
        let path = format!("/v1/threads?owner={OWNER}");
        let listed = value(&self.ok(Method::GET, &path, "").await);
        let ids = listed["threads"].as_array().unwrap().iter();
        let ids: Vec<_> = ids
            .map(|thread| thread["id"].as_str().unwrap().to_owned())
            .collect();
        let counted = self
            .ok(Method::GET, &format!("/v1/owners/{OWNER}"), "")
            .await;
        assert_eq!(value(&counted)["threads"], ids.len());
        ids
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn id_of(thread: &str) -> String {
    value(thread)["id"].as_str().unwrap().to_owned()
}

fn content(document: &str, id: &str) -> String {
    let (before, rest) = document.split_once(r#","expires_at":""#).unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}{after}").replace(id, "the thread")
}

#[tokio::test]
async fn a_killed_rotation_leaves_the_thread_with_exactly_one_id() {
    for cut in cuts() {
        let deployment = Deployment::new();
        let survivor: Replica = deployment.replica().await;
        let id = survivor.create().await;
        let content = survivor.content(&id).await;
        let path = format!("/v1/threads/{id}/rotate");
        let rotate =
            async |replica: &Replica| replica.send(Method::POST, &path, "", Some("rotate")).await;

        let was_killed = deployment.call_and_kill(&[&id], cut, rotate).await;

        let owned = survivor.owned().await;
        assert_eq!(owned.len(), 1, "{cut:?}");
        assert_eq!(survivor.exists(&id).await, owned[0] == id);
        assert_eq!(survivor.content(&owned[0]).await, content);
        let (status, rotated) = rotate(&survivor).await;
        assert_eq!(status, 200, "{cut:?} {rotated}");
        let new = id_of(&rotated);
        assert_ne!(new, id);
        assert_eq!(survivor.owned().await, [&*new]);
        assert_eq!(survivor.content(&new).await, content);
        let state = format!("/v1/threads/{id}/state/k");
        let (status, late) = survivor.send(Method::PUT, &state, "2", None).await;
        assert_eq!(status, 410, "{late}");
        if !was_killed {
            return;
        }
    }
    panic!("the call makes too many changes");
}

#[tokio::test]
async fn a_killed_import_leaves_the_whole_thread_or_nothing() {
    for cut in cuts() {
        let deployment = Deployment::new();
        let survivor: Replica = deployment.replica().await;
        let source = survivor.create().await;
        let path = format!("/v1/threads/{source}");
        let document = survivor
            .ok(Method::GET, &format!("{path}/export"), "")
            .await;
        survivor.ok(Method::DELETE, &path, "").await;
        let id = new_id();
        let document = document.replace(&source, &id);
        let import = async |replica: &Replica| {
            let path = "/v1/threads/import";
            replica
                .send(Method::POST, path, &document, Some("import"))
                .await
        };

        let was_killed = deployment.call_and_kill(&[&id, "}:m:"], cut, import).await;

        let owned = survivor.owned().await;
        assert_eq!(survivor.exists(&id).await, owned == [id.clone()], "{cut:?}");
        if !owned.is_empty() {
            assert_eq!(survivor.content(&id).await, content(&document, &id));
        }
        assert!(deployment.prepared_keys_expire(), "{cut:?}");
        let (status, imported) = import(&survivor).await;
        assert_eq!(status, 201, "{cut:?} {imported}");
        assert_eq!(survivor.content(&id).await, content(&document, &id));
        assert_eq!(survivor.owned().await, [id]);
        if !was_killed {
            return;
        }
    }
    panic!("the call makes too many changes");
}

#[tokio::test]
async fn a_killed_replacing_import_replaces_the_whole_thread_or_nothing() {
    for cut in cuts() {
        let deployment = Deployment::new();
        let survivor: Replica = deployment.replica().await;
        let id = survivor.create().await;
        let path = format!("/v1/threads/{id}");
        let document = survivor
            .ok(Method::GET, &format!("{path}/export"), "")
            .await;
        let later = json!({"later": 1}).to_string();
        survivor
            .ok(Method::PUT, &format!("{path}/state"), &later)
            .await;
        survivor
            .ok(Method::DELETE, &format!("{path}/checkpoints/1"), "")
            .await;
        let before = survivor.content(&id).await;
        let import = async |replica: &Replica| {
            let path = "/v1/threads/import?if_exists=replace";
            replica
                .send(Method::POST, path, &document, Some("import"))
                .await
        };

        let was_killed = deployment.call_and_kill(&[&id, "}:m:"], cut, import).await;

        let content_after_kill = survivor.content(&id).await;
        let after = content(&document, &id);
        assert!(
            content_after_kill == before || content_after_kill == after,
            "{cut:?} {content_after_kill}"
        );
        assert_eq!(survivor.owned().await, [&*id]);
        let (status, imported) = import(&survivor).await;
        assert_eq!(status, 201, "{cut:?} {imported}");
        assert_eq!(survivor.content(&id).await, after);
        assert_eq!(survivor.owned().await, [id]);
        if !was_killed {
            return;
        }
    }
    panic!("the call makes too many changes");
}
