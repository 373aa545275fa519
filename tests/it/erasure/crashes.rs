//! Kills replicas before or after each store call of an erasure, and checks what other replicas find afterwards.

use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use threadkeep_domain::Owner;

use super::replica::Replica;
use crate::conformance::room::Room;
use crate::killing::{self, Deployment, cuts};

const DAY: Duration = Duration::from_secs(86_400);

impl killing::Replica for Replica {
    const CHANGES: &'static [&'static str] = &["EVALSHA", "ZREM", "HDEL", "UNLINK", "DEL"];

    fn start(room: &Room) -> Self {
        Self::giving_up_after(DAY, room)
    }
}

#[tokio::test]
async fn a_killed_create_lists_the_thread_if_it_exists_and_a_retry_creates_it_once() {
    for cut in cuts() {
        let deployment = Deployment::new();
        let id = format!("thrd_{:032x}", rand::random::<u128>());
        let body = json!({"id": id, "owner": "ann", "state": {"k": 1}});
        let create = async |replica: &Replica| {
            let path = "/v1/threads";
            replica
                .send_once(Method::POST, path, &body, Some("create"))
                .await
        };

        let was_killed = deployment.call_and_kill(&[&id], cut, create).await;

        let survivor: Replica = deployment.replica().await;
        let listed = survivor.owned("ann").await["threads"].as_u64().unwrap();
        let path = format!("/v1/threads/{id}");
        let thread = survivor.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["exists"], listed == 1, "{cut:?}");
        let (status, created) = create(&survivor).await;
        assert_eq!(status, 201, "{created}");
        assert_eq!(survivor.owned("ann").await["threads"], 1);
        let thread = survivor.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["version"], 1, "{cut:?}");
        assert_eq!(survivor.erase("ann").await["threads"], 1);
        if !was_killed {
            return;
        }
    }
    panic!("the call makes too many changes");
}

#[tokio::test]
async fn a_killed_owner_change_sets_and_lists_the_owner_together() {
    for cut in cuts() {
        let deployment = Deployment::new();
        let survivor: Replica = deployment.replica().await;
        let body = json!({"state": {"k": 1}});
        let made = survivor.ok(Method::POST, "/v1/threads", &body).await;
        let id = made["id"].as_str().unwrap();
        let path = format!("/v1/threads/{id}");
        let body = json!({"owner": "ann"});
        let claim = async |replica: &Replica| {
            replica
                .send_once(Method::PATCH, &path, &body, Some("claim"))
                .await
        };

        let was_killed = deployment.call_and_kill(&[id], cut, claim).await;

        let listed = survivor.owned("ann").await["threads"] == 1;
        let thread = survivor.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(
            thread.get("owner").is_some_and(|owner| owner == "ann"),
            listed
        );
        let (status, claimed) = claim(&survivor).await;
        assert_eq!(status, 200, "{claimed}");
        let thread = survivor.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["version"], 2, "{cut:?}");
        assert_eq!(survivor.owned("ann").await["threads"], 1);
        assert_eq!(survivor.erase("ann").await["threads"], 1);
        if !was_killed {
            return;
        }
    }
    panic!("the call makes too many changes");
}

#[tokio::test]
async fn another_replica_completes_a_killed_erasure() {
    for cut in cuts() {
        let deployment = Deployment::new();
        let survivor: Replica = deployment.replica().await;
        let hook = json!({"url": "http://127.0.0.1:9/", "events": ["thread.created"]});
        survivor.ok(Method::POST, "/v1/webhooks", &hook).await;
        let mut ids = Vec::new();
        for _ in 0..2 {
            ids.push(survivor.create("ann-to-erase").await);
        }
        let thread = format!("/v1/threads/{}", ids[0]);
        survivor.ok(Method::DELETE, &thread, &Value::Null).await;
        let bob = survivor.create("bob").await;
        let erase = async |replica: &Replica| {
            let path = "/v1/owners/ann-to-erase";
            replica.send(Method::DELETE, path, &Value::Null).await
        };

        let owner = Owner::new("ann-to-erase").unwrap().tag().to_string();
        let was_killed = deployment
            .call_and_kill(&[&owner, ":ledger"], cut, erase)
            .await;

        let listed = survivor.owned("ann-to-erase").await["threads"].as_u64();
        let mut living = 0;
        for id in &ids {
            let path = format!("/v1/threads/{id}");
            let thread = survivor.ok(Method::GET, &path, &Value::Null).await;
            living += u64::from(thread["exists"] == true);
        }
        assert_eq!(listed, Some(living), "{cut:?}");
        survivor.erase("ann-to-erase").await;
        deployment.assert_is_clean();
        let path = format!("/v1/threads/{bob}");
        let thread = survivor.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["exists"], true);
        if !was_killed {
            return;
        }
    }
    panic!("the call makes too many changes");
}

impl Deployment {
    /// Asserts that only tombstones (markers that reject late writes) and the thread of another owner remain.
    fn assert_is_clean(&self) {
        let mut connection = self.redis.connection();
        let keys: Vec<String> = ::redis::cmd("KEYS")
            .arg(format!("{}:*", self.prefix))
            .query(&mut connection)
            .unwrap();
        let of = |kind: &str| keys.iter().filter(|key| key.contains(kind)).count();
        assert_eq!(of("}:o:"), 1, "{keys:?}");
        assert_eq!(of("}:oa:") + of("}:oe:") + of("}:i:"), 0, "{keys:?}");
        for key in keys
            .iter()
            .filter(|key| key.contains("}:a:") || key.contains("}:t:"))
        {
            let fields: Vec<String> = ::redis::cmd("HKEYS")
                .arg(key)
                .query(&mut connection)
                .unwrap();
            assert!(
                fields == ["T"] || fields.contains(&"O".to_owned()),
                "{fields:?}"
            );
        }
    }
}
