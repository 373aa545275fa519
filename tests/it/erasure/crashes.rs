//! Kills replicas before or after each store call of an erasure, and checks what other replicas find afterwards.

use std::time::Duration;

use actix_web::http::Method;
use serde_json::{Value, json};
use threadkeep_domain::Owner;

use super::replica::Replica;
use crate::conformance::room::Room;
use crate::killing::{self, Place, cuts};

const DAY: Duration = Duration::from_secs(86_400);

impl killing::Replica for Replica {
    const CHANGES: &'static [&'static str] = &["EVALSHA", "ZREM", "HDEL", "UNLINK", "DEL"];

    fn start(room: &Room) -> Self {
        Self::giving_up_after(DAY, room)
    }
}

#[tokio::test]
async fn a_thread_with_an_owner_is_listed_if_it_was_created_and_a_repeat_creates_it_once() {
    for cut in cuts() {
        let place = Place::new();
        let id = format!("thrd_{:032x}", rand::random::<u128>());
        let body = json!({"id": id, "owner": "ann", "state": {"k": 1}});
        let create = async |replica: &Replica| {
            let path = "/v1/threads";
            replica
                .send_once(Method::POST, path, &body, Some("create"))
                .await
        };

        let was_killed = place.call_and_kill(&[&id], cut, create).await;

        let other: Replica = place.replica().await;
        let found = other.owned("ann").await["threads"].as_u64().unwrap();
        let path = format!("/v1/threads/{id}");
        let thread = other.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["exists"], found == 1, "{cut:?}");
        let (status, created) = create(&other).await;
        assert_eq!(status, 201, "{created}");
        assert_eq!(other.owned("ann").await["threads"], 1);
        let thread = other.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["version"], 1, "{cut:?}");
        assert_eq!(other.erase("ann").await["threads"], 1);
        if !was_killed {
            return;
        }
    }
    panic!("it makes no end of changes");
}

#[tokio::test]
async fn a_thread_that_gets_an_owner_is_listed_from_then_on() {
    for cut in cuts() {
        let place = Place::new();
        let other: Replica = place.replica().await;
        let body = json!({"state": {"k": 1}});
        let made = other.ok(Method::POST, "/v1/threads", &body).await;
        let id = made["id"].as_str().unwrap();
        let path = format!("/v1/threads/{id}");
        let body = json!({"owner": "ann"});
        let claim = async |replica: &Replica| {
            replica
                .send_once(Method::PATCH, &path, &body, Some("claim"))
                .await
        };

        let was_killed = place.call_and_kill(&[id], cut, claim).await;

        let listed = other.owned("ann").await["threads"] == 1;
        let thread = other.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(
            thread.get("owner").is_some_and(|owner| owner == "ann"),
            listed
        );
        let (status, claimed) = claim(&other).await;
        assert_eq!(status, 200, "{claimed}");
        let thread = other.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["version"], 2, "{cut:?}");
        assert_eq!(other.owned("ann").await["threads"], 1);
        assert_eq!(other.erase("ann").await["threads"], 1);
        if !was_killed {
            return;
        }
    }
    panic!("it makes no end of changes");
}

#[tokio::test]
async fn an_erasure_that_was_killed_anywhere_is_completed_by_another_replica() {
    for cut in cuts() {
        let place = Place::new();
        let other: Replica = place.replica().await;
        let hook = json!({"url": "http://127.0.0.1:9/", "events": ["thread.created"]});
        other.ok(Method::POST, "/v1/webhooks", &hook).await;
        let mut ids = Vec::new();
        for _ in 0..2 {
            ids.push(other.create("ann-to-erase").await);
        }
        let thread = format!("/v1/threads/{}", ids[0]);
        other.ok(Method::DELETE, &thread, &Value::Null).await;
        let bob = other.create("bob").await;
        let erase = async |replica: &Replica| {
            let path = "/v1/owners/ann-to-erase";
            replica.send(Method::DELETE, path, &Value::Null).await
        };

        let owner = Owner::new("ann-to-erase").unwrap().tag().to_string();
        let was_killed = place.call_and_kill(&[&owner, ":ledger"], cut, erase).await;

        let left = other.owned("ann-to-erase").await["threads"].as_u64();
        let mut living = 0;
        for id in &ids {
            let path = format!("/v1/threads/{id}");
            let thread = other.ok(Method::GET, &path, &Value::Null).await;
            living += u64::from(thread["exists"] == true);
        }
        assert_eq!(left, Some(living), "{cut:?}");
        other.erase("ann-to-erase").await;
        place.assert_is_clean();
        let path = format!("/v1/threads/{bob}");
        let thread = other.ok(Method::GET, &path, &Value::Null).await;
        assert_eq!(thread["exists"], true);
        if !was_killed {
            return;
        }
    }
    panic!("it makes no end of changes");
}

impl Place {
    /// Asserts that only tombstones and the thread of another owner remain.
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
