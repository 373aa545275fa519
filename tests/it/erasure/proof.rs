//! Proves that an erasure is complete: writes markers (unique strings) wherever thread content is stored. A dump of
//! Redis must contain every marker before the erasure and no marker afterwards, in any encoding.

use std::fs;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memmem::find;
use serde_json::{Value, json};
use threadkeep_domain::effects::{
    BeginEffect, EffectId, Fence, InputHash, Outcome, RunKey, SettleEffect,
};
use threadkeep_domain::{
    Access, Json, Owner, OwnerChange, TakeTurn, ThreadPolicy, TurnToken, Write,
};
use threadkeep_store::Clock;

use super::replica::Replica;
use crate::conformance::room::{self, Room, redis_on};
use crate::support::receiver::{AnswerMode, Receiver};
use crate::support::redis::RedisServer;
use crate::support::until;

const OWNER: &str = "owner-to-erase";
/// The markers, each with part of the name of a Redis key that stores it. These keys belong to threads, checkpoints,
/// scopes, effects, stored answers to idempotent requests, archives, the log and consumers.
const MARKERS: [(&str, &str); 38] = [
    (OWNER, "}:t:"),
    ("mark-key-name", "}:t:"),
    ("mark-state", "}:t:"),
    ("mark-element", "}:t:"),
    ("mark-long-array", "}:t:"),
    ("mark-metadata", "}:t:"),
    ("mark-checkpoint-name", "}:p:"),
    ("mark-checkpoint-state", "}:p:"),
    ("mark-metadata", "}:p:"),
    ("mark-scope-key", "}:k:"),
    ("mark-scope-value", "}:k:"),
    ("mark-task", "}:k:"),
    ("mark-tool-value", "}:k:"),
    ("mark-item-id", "}:y:"),
    ("mark-item-value", "}:y:"),
    (OWNER, "}:i:"),
    ("mark-metadata", "}:i:"),
    ("mark-popped", "}:i:"),
    ("mark-item-id", "}:z:"),
    ("mark-appended-id", "}:z:"),
    ("mark-appended-value", "}:y:"),
    ("mark-taken", "}:j:"),
    ("mark-moved-metadata", "}:i:"),
    ("mark-moved-key", "}:e"),
    ("mark-moved-key", "}:t:"),
    ("mark-changed-key", "}:e"),
    ("mark-scope-key", "}:e"),
    ("mark-archived", "}:a:"),
    ("mark-earlier-life", "}:a:"),
    ("mark-archived-item", "}:y:"),
    ("mark-effect", "}:f:"),
    ("mark-called", "}:f:"),
    ("mark-result", "}:f:"),
    ("mark-archived-result", "}:f:"),
    ("mark-changed-key", "}:parked"),
    ("mark-moved-key", "}:pending"),
    ("mark-pending-key", "}:pending"),
    (OWNER, "}:a:"),
];

struct DumpableRedis(Arc<RedisServer>);

impl DumpableRedis {
    fn start() -> Self {
        let options = ["--rdbcompression", "no"];
        Self(Arc::new(RedisServer::start_with(&options)))
    }

    fn dump(&self) -> Vec<u8> {
        self.0.call(&["SAVE"]);
        fs::read(self.0.dir().join("dump.rdb")).unwrap()
    }

    fn values(&self, kind: &str) -> Vec<Vec<u8>> {
        let mut connection = self.0.connection();
        let keys = self.0.keys();
        let of_kind = keys.iter().filter(|key| key.contains(kind));
        let dump = |key: &String| {
            let value: Option<Vec<u8>> =
                redis::cmd("DUMP").arg(key).query(&mut connection).unwrap();
            [key.as_bytes(), &value.unwrap_or_default()].concat()
        };
        of_kind.map(dump).collect()
    }

    fn holds(&self, marker: &str, kind: &str) -> bool {
        let values = self.values(kind);
        values
            .iter()
            .any(|value| find(value, marker.as_bytes()).is_some())
    }
}

/// Returns `text` unchanged, in hex, and in base64 at each alignment.
fn forms(text: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![
        text.as_bytes().to_vec(),
        hex::encode(text).into_bytes(),
        hex::encode_upper(text).into_bytes(),
    ];
    for shift in 0..3 {
        let shifted = ["x".repeat(shift).as_bytes(), text.as_bytes()].concat();
        let encoded = STANDARD_NO_PAD.encode(&shifted);
        // the first and last characters depend on the adjacent bytes
        let start = [0, 2, 3][shift];
        let end = encoded.len() - usize::from(!shifted.len().is_multiple_of(3));
        forms.push(encoded.as_bytes()[start..end].to_vec());
    }
    forms
}

fn text(value: &str) -> Value {
    value.into()
}

async fn fill(replica: &Replica, id: &str) {
    let thread = format!("/v1/threads/{id}");
    let scope = format!("thread:{id}");
    let long: Vec<_> = (0..2_000).map(|_| text("mark-long-array")).collect();
    let sets = json!({"operations": [
        {"op": "set", "key": "mark-key-name", "value": "mark-state"},
        {"op": "set", "key": "list", "value": ["mark-element", "mark-popped"]},
        {"op": "set", "key": "long", "value": long},
    ]});
    let path = format!("{thread}/state");
    replica.ok(Method::PATCH, &path, &sets).await;
    let append = json!({"operations": [
        {"op": "append", "id": "mark-appended-id", "value": "mark-appended-value"},
        {"op": "append", "value": "mark-taken"},
    ]});
    once(replica, Method::PATCH, &path, &append, "append").await;
    let take = json!({"count": 1});
    let history = format!("{thread}/history");
    let taken = format!("{history}/take");
    once(replica, Method::POST, &taken, &take, "take").await;
    let pop = json!({"operations": [{"op": "pop", "key": "list"}]});
    once(replica, Method::PATCH, &path, &pop, "pop").await;
    let item = json!({"id": "mark-item-id", "value": "mark-item-value"});
    once(replica, Method::POST, &history, &item, "add").await;
    for (path, body) in [
        (
            "/v1/scopes/keys/set",
            json!({"scope": scope, "key": "mark-scope-key", "value": "mark-scope-value"}),
        ),
        (
            "/v1/scopes/tasks/set",
            json!({"scope": scope, "tasks": [{"content": "mark-task", "status": "pending"}]}),
        ),
        (
            "/v1/tools/kv_write",
            json!({"scope": scope, "arguments": {"key": "b", "value": "mark-tool-value"}}),
        ),
    ] {
        replica.ok(Method::POST, path, &body).await;
        once(replica, Method::POST, path, &body, path).await;
    }
    save(replica, id).await;
}

async fn save(replica: &Replica, id: &str) {
    set(replica, id, "k", "mark-checkpoint-state").await;
    let path = format!("/v1/threads/{id}/checkpoints");
    let name = json!({"name": "mark-checkpoint-name"});
    let saved = once(replica, Method::POST, &path, &name, "save").await;
    set(replica, id, "k", "1").await;
    let path = format!("{path}/{}/restore", saved["checkpoint"]);
    once(replica, Method::POST, &path, &Value::Null, "restore").await;
    set(replica, id, "k", "1").await;
}

/// Creates a thread and replaces its id twice, the first time before it has an owner. Returns all ids, oldest first.
async fn moved(replica: &Replica) -> [String; 3] {
    let new = json!({"metadata": {"m": "mark-moved-metadata"}, "state": {"mark-moved-key": 1}});
    let made = once(replica, Method::POST, "/v1/threads", &new, "visitor").await;
    let first = id_of(&made);
    let second = rotate(replica, &first).await;
    give(replica, &second, OWNER).await;
    let third = rotate(replica, &second).await;
    [first, second, third]
}

async fn passed_on(replica: &Replica) -> String {
    let new = json!({"owner": OWNER});
    let made = once(replica, Method::POST, "/v1/threads", &new, "pass-on").await;
    let moved = rotate(replica, &id_of(&made)).await;
    give(replica, &moved, "another-owner").await;
    rotate(replica, &moved).await
}

fn id_of(thread: &Value) -> String {
    thread["id"].as_str().unwrap().to_owned()
}

async fn give(replica: &Replica, id: &str, owner: &str) {
    let path = format!("/v1/threads/{id}");
    let owner = json!({"owner": owner});
    once(replica, Method::PATCH, &path, &owner, "give").await;
}

async fn rotate(replica: &Replica, id: &str) -> String {
    let path = format!("/v1/threads/{id}/rotate");
    let key = format!("rotate-{id}");
    id_of(&once(replica, Method::POST, &path, &Value::Null, &key).await)
}

/// Sends a request with the idempotency key `key`, so that the server remembers the answer.
async fn once(replica: &Replica, method: Method, path: &str, body: &Value, key: &str) -> Value {
    let (status, answer) = replica.send_once(method, path, body, Some(key)).await;
    assert!(status < 300, "{path}: {status} {answer}");
    answer
}

async fn call_tool(room: &Room, id: &str, result: &str) {
    let (backend, id) = (&room.backend, &id.parse().unwrap());
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: Duration::from_secs(600),
        exclusive: false,
        waits: false,
        idempotency: None,
    };
    backend.take_turn(id, Access::All, &take).await.unwrap();
    let effect: EffectId = "mark-effect".parse().unwrap();
    let begin = BeginEffect {
        id: &effect,
        tool: &"mark-called".parse().unwrap(),
        hash: &InputHash::of(None),
        idempotent: false,
        retry: None,
        turn: Some(take.token),
        idempotency: None,
        fence: Fence::random(),
        key: RunKey::random(),
    };
    let granted = backend.begin_effect(id, Access::All, &begin).await;
    let settle = SettleEffect {
        id: effect,
        fence: granted.unwrap().fence,
        outcome: Outcome::Result(Json::parse(&text(result).to_string()).unwrap()),
    };
    let settled = backend.settle_effect(id, Access::All, &settle, None);
    settled.await.unwrap();
}

async fn set(replica: &Replica, id: &str, key: &str, value: &str) {
    let path = format!("/v1/threads/{id}/state/{key}");
    replica.ok(Method::PUT, &path, &text(value)).await;
}

async fn end(replica: &Replica, id: &str) {
    let path = format!("/v1/threads/{id}");
    replica.ok(Method::DELETE, &path, &Value::Null).await;
}

#[tokio::test]
async fn a_dump_of_redis_has_no_data_of_an_erased_owner() {
    let redis = DumpableRedis::start();
    let clock = Clock::system();
    let room = redis_on(Arc::clone(&redis.0), clock.clone()).await;
    let receiver = Receiver::start().await;
    receiver.set("/a", AnswerMode::Failing(500));
    // this replica gives up on events immediately
    let first = Replica::giving_up_after(Duration::ZERO, &room);
    let hook = json!({"url": receiver.url("/a"), "events": [
        "thread.created", "thread.updated", "thread.destroyed", "thread.rotated", "kv_updated",
        "task_list_updated", "history.appended",
    ]});
    first.ok(Method::POST, "/v1/webhooks", &hook).await;
    let new = json!({"owner": OWNER, "metadata": {"m": "mark-metadata"}});
    let created = once(&first, Method::POST, "/v1/threads", &new, "create").await;
    let living = created["id"].as_str().unwrap();
    fill(&first, living).await;
    // changes are logged only once a consumer has subscribed to them
    until(async || {
        set(&first, living, "mark-changed-key", "1").await;
        redis.holds("mark-changed-key", "}:parked")
    })
    .await;
    fill(&first, living).await;
    call_tool(&room, living, "mark-result").await;
    first.events.shutdown().await;
    // this replica retries deliveries for a day
    let replica = Replica::giving_up_after(Duration::from_secs(86_400), &room);
    set(&replica, living, "mark-pending-key", "1").await;
    until(async || redis.holds("mark-pending-key", "}:pending")).await;

    let archived = replica.create(OWNER).await;
    set(&replica, &archived, "k", "mark-earlier-life").await;
    end(&replica, &archived).await;
    clock.advance(Duration::from_secs(120));
    let again = json!({"id": archived, "owner": OWNER, "state": {"k": "mark-archived"}});
    replica.ok(Method::POST, "/v1/threads", &again).await;
    let item = json!({"id": "a", "value": "mark-archived-item"});
    let path = format!("/v1/threads/{archived}/history");
    replica.ok(Method::POST, &path, &item).await;
    call_tool(&room, &archived, "mark-archived-result").await;
    end(&replica, &archived).await;
    let restored = replica.create(OWNER).await;
    set(&replica, &restored, "k", "mark-restored").await;
    end(&replica, &restored).await;
    let path = format!("/v1/archives/{restored}/restore");
    replica.ok(Method::POST, &path, &Value::Null).await;
    let moved = moved(&replica).await;
    let passed_on = passed_on(&replica).await;
    let other = replica.create("another-owner").await;
    set(&replica, &other, "mark-of-another", "mark-of-another").await;

    until(async || redis.holds("mark-moved-key", "}:pending")).await;
    for (marker, kind) in MARKERS {
        assert!(redis.holds(marker, kind), "{marker} is not in {kind}");
    }
    let before = redis.dump();
    let markers = MARKERS.map(|(marker, _)| marker);
    for marker in markers.iter().chain(&["mark-restored"]) {
        assert!(find(&before, marker.as_bytes()).is_some(), "{marker}");
    }

    let erased = replica.erase(OWNER).await;

    assert_eq!(erased["threads"], 3, "{erased}");
    assert_eq!(erased["archives"], 2, "{erased}");
    let assert_clean = |dump: &[u8]| {
        for marker in markers.iter().chain(&["mark-restored"]) {
            for form in forms(marker) {
                assert!(find(dump, &form).is_none(), "{marker} remains");
            }
        }
        assert!(find(dump, b"mark-of-another").is_some());
    };
    assert_clean(&redis.dump());
    // consumers must not write back events that they read before the erasure
    receiver.set("/a", AnswerMode::Accepting);
    set(&replica, &other, "k", "1").await;
    let path = "/v1/webhooks";
    let hooks = replica.ok(Method::GET, path, &Value::Null).await;
    let hook = hooks["webhooks"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/webhooks/{hook}/replay");
    replica.ok(Method::POST, &path, &Value::Null).await;
    until(async || {
        let taken = receiver.taken("/a");
        let has = |id: &str| taken.iter().any(|delivery| delivery.words().contains(id));
        has(&other) && has(living)
    })
    .await;
    let path = format!("/v1/threads/{passed_on}");
    let thread = replica.ok(Method::GET, &path, &Value::Null).await;
    assert_eq!(thread["owner"], "another-owner");
    replica.events.shutdown().await;
    assert_clean(&redis.dump());
    for delivery in receiver.taken("/a") {
        let body = String::from_utf8(delivery.body.to_vec()).unwrap();
        assert!(!body.contains(OWNER), "{body}");
        let erased_ids = [living, &archived, &restored].into_iter();
        let is_of_erased = erased_ids
            .chain(moved.iter().map(String::as_str))
            .any(|id| body.contains(id));
        assert!(!is_of_erased || !body.contains("mark-"), "{body}");
    }
}

/// Redis keeps the bytes of trimmed events in a stream block with newer events, so an erasure must rewrite the log.
#[tokio::test]
async fn a_dump_of_redis_has_no_trimmed_events_of_an_erased_owner() {
    const DAY: Duration = Duration::from_secs(86_400);
    let redis = DumpableRedis::start();
    let room = redis_on(Arc::clone(&redis.0), Clock::system()).await;
    let policy = ThreadPolicy {
        ttl: 30 * DAY,
        ..ThreadPolicy::THREAD
    };
    let thread = room.subject_under(policy);
    let owner = Owner::new(OWNER).unwrap();
    let operations = [room::set("mark-trimmed", "1"), room::set("k", "1")];
    let create = Write {
        operations: &operations,
        owner: OwnerChange::Set(&owner),
        ..thread.blank()
    };
    thread.write(&create).await.unwrap();
    thread.merge(&[room::delete("mark-trimmed")]).await;
    room.advance(2 * DAY);
    let later = iter::repeat_with(|| room.subject())
        .find(|later| room.bucket(later) == room.bucket(&thread))
        .unwrap();
    later.merge(&[room::set("k", "1")]).await;
    room.tidy().await;
    assert!(room.events(&thread).await.is_empty());
    assert!(find(&redis.dump(), b"mark-trimmed").is_some());

    Replica::giving_up_after(DAY, &room).erase(OWNER).await;

    assert!(find(&redis.dump(), b"mark-trimmed").is_none());
    assert_eq!(room.events(&later).await.len(), 1);
}

#[test]
fn forms_cover_every_encoding_of_a_text() {
    for around in ["", "a", "ab", "abc"] {
        let text = format!("{around}mark{around}");
        for encoded in [
            text.clone(),
            hex::encode(&text),
            hex::encode_upper(&text),
            STANDARD_NO_PAD.encode(&text),
        ] {
            let forms = forms("mark");
            let is_found = |form: &Vec<u8>| find(encoded.as_bytes(), form).is_some();
            assert!(forms.iter().any(is_found), "{encoded}");
        }
    }
}
