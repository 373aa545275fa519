//! Tests that every script accesses only declared keys, all in one cluster slot. A standalone Redis does not check
//! this, so a script with an undeclared key would fail only in a cluster. Gets the accessed keys from `MONITOR`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::Connection;
use threadkeep_domain::effects::{BeginEffect, Fence, InputHash, Outcome, RunKey, SettleEffect};
use threadkeep_domain::scope::{
    HistoryItem, KeyRule, KvOperation, RecordChange, ScopeId, ScopeKey, ScopePolicies, ScopeValue,
    ScopeWrite, TaskList, TasksChange,
};
use threadkeep_domain::{
    Access, Completed, Conditions, Event, EventId, Fingerprint, MetadataChange, Operation, Owner,
    OwnerChange, OwnerTag, Position, Precondition, RateName, Release, ResponseId, Slice, TakeTurn,
    ThreadPolicy, TurnToken, Write,
};
use threadkeep_store::{
    BeginResponse, Clock, Counted, Destroy, EndResponse, EndWrite, Floor, HistoryFrom, Holding,
    JournalEntry, LedgerChange, Listing, Reader, Reading, Rotate, ScopeEnd, ScopeParts,
    ThreadOrder, WriteError,
};

use crate::conformance::room::{
    Room, Subject, cluster_within, delete, guard_not_an_object, increment, json, key, numbered_key,
    push, push_window, redis_on, set,
};
use crate::conformance::space::seconds;
use crate::support::cluster::RedisCluster;
use crate::support::monitor::{Called, Monitor};
use crate::support::redis::RedisServer;

const THREADS: usize = 20;

#[tokio::test]
async fn a_script_touches_only_its_declared_keys_and_these_share_a_hash_tag() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;

    let monitor = Monitor::start(&redis);
    for _ in 0..THREADS {
        do_everything(&room).await;
    }
    for name in ["n", "m"] {
        keep_entries(&room, name).await;
    }
    let commands = monitor.stop();

    let mut connection = redis.connection();
    let mut declared = Vec::new();
    let mut tags = HashSet::new();
    let mut scripts = HashSet::new();
    for Called {
        words,
        is_from_script,
    } in &commands
    {
        let keys = keys_of(&mut connection, words);
        if *is_from_script {
            let strays = keys.iter().find(|key| !is_declared(key, &declared));
            assert_eq!(strays, None, "{words:?} after {declared:?}");
            continue;
        }
        if keys.len() > 1 {
            let own: HashSet<_> = keys.iter().map(|key| tag(key)).collect();
            assert_eq!(own.len(), 1, "{keys:?}");
            tags.extend(own);
        }
        if words[0].starts_with("EVAL") {
            scripts.insert(&words[1]);
            declared = keys;
        }
    }
    // otherwise the test proves nothing
    assert!(tags.len() > THREADS / 2, "{tags:?}");
    assert!(scripts.len() > 36, "{scripts:?}");
    assert!(commands.len() > 100 * THREADS);
}

#[tokio::test]
async fn a_script_that_drops_keys_changes_nothing_while_its_slot_moves() {
    let cluster = Arc::new(RedisCluster::start());
    // set a short time limit, because a call that accesses a moving slot may take the whole limit
    let room = cluster_within(Duration::from_secs(5), Arc::clone(&cluster)).await;
    let thread = room.subject();
    // create all data that the scripts use, because a script that finds no data returns early
    thread.merge(&[set("a", "1")]).await;
    thread.destroy().await;
    room.advance(Duration::from_secs(120));
    thread
        .merge_once(numbered_key(1), &[set("a", "2"), set("b", "3")])
        .await
        .unwrap();
    let duration = Duration::from_secs(600);
    room.backend.watch(&[thread.id], duration).await.unwrap();
    thread.merge(&[set("a", "4")]).await;
    let [ann, bob] = ["ann", "bob"].map(|text| Owner::new(text).unwrap());
    let give_to = |owner| Write {
        owner: OwnerChange::Set(owner),
        ..thread.blank()
    };
    thread.write(&give_to(&ann)).await.unwrap();
    let free = Conditions::default();
    let saved = room.backend.save_checkpoint(&thread.id, None, &free).await;
    saved.unwrap();
    let before = (thread.state().await, logged(&room, &thread).await);
    let slots = cluster.nodes[..3].iter().map(RedisCluster::filled_slots);
    let slots: Vec<_> = slots.collect();

    for ([from, to], slots) in [[0, 1], [1, 2], [2, 0]].into_iter().zip(&slots) {
        let [from, to] = [from, to].map(|index| &cluster.nodes[index]);
        slots
            .iter()
            .for_each(|slot| cluster.begin_move(*slot, from, to));
    }
    let operations = [Operation::Clear, set("c", "5")];
    let clear = Write {
        operations: &operations,
        ..thread.blank()
    };
    let cleared = thread.store.write(&thread.id, &clear).await;
    assert!(matches!(cleared, Err(WriteError::Store(_))), "{cleared:?}");
    let given = thread.store.write(&thread.id, &give_to(&bob)).await;
    assert!(matches!(given, Err(WriteError::Store(_))), "{given:?}");
    let destroy = Destroy {
        tombstone: Duration::from_secs(60),
        conditions: Conditions {
            access: Access::All,
            precondition: None,
            idempotency: Some(numbered_key(2)),
            turn: None,
        },
    };
    let destroyed = thread.store.destroy(&thread.id, &destroy).await;
    assert!(
        matches!(destroyed, Err(WriteError::Store(_))),
        "{destroyed:?}"
    );
    let rotate = Rotate {
        conditions: Conditions::default(),
        tombstone: Duration::from_secs(60),
    };
    let rotated = thread.store.rotate(&thread.id, &rotate).await;
    assert!(matches!(rotated, Err(WriteError::Store(_))), "{rotated:?}");
    let blank = thread.blank();
    let restored = room.backend.restore_checkpoint(&thread.id, 1, &blank).await;
    assert!(
        matches!(restored, Err(WriteError::Store(_))),
        "{restored:?}"
    );
    let duration = Duration::from_secs(60);
    let erased = room.backend.erase_owned(ann.tag(), duration).await;
    assert!(erased.is_err(), "{erased:?}");
    for (index, slots) in slots.iter().enumerate() {
        for (slot, node) in slots
            .iter()
            .flat_map(|slot| (0..3).map(move |node| (slot, node)))
        {
            let node = &cluster.nodes[(index + node) % 3];
            node.call(&["CLUSTER", "SETSLOT", &slot.to_string(), "STABLE"]);
        }
    }

    assert_eq!((thread.state().await, logged(&room, &thread).await), before);
    for (owner, threads) in [(&ann, 1), (&bob, 0)] {
        let owned = room.backend.measure_owned(owner.tag()).await.unwrap();
        assert_eq!(owned.threads, threads);
    }
    assert!(
        thread
            .store
            .destroy(&thread.id, &destroy)
            .await
            .unwrap()
            .existed
    );
    assert_eq!(logged(&room, &thread).await.len(), before.1.len() + 1);
}

async fn logged(room: &Room, thread: &Subject) -> Vec<Event> {
    let bucket = room.backend.bucket_of(&thread.id);
    let from = [(bucket, Position::default())];
    room.backend.read_log(&from, 1000).await.unwrap().remove(0)
}

/// Returns whether `key` is declared, or belongs to a declared key in the same slot. For example, the checkpoints of a
/// thread belong to the thread, and the lists of a bucket (the keys of one hash tag) belong to any key of the bucket.
fn is_declared(key: &str, declared: &[String]) -> bool {
    let is_life = |rest: &str| rest.len() == 17 && rest.starts_with(':');
    let is_checkpoint = |rest: &str| {
        let number = rest.strip_prefix(':');
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let of_thread = |declared_key: &str| {
        let kinds = ["}:k:", "}:y:", "}:z:", "}:j:", "}:p:", "}:w:", "}:f:"];
        let of_thread = kinds.map(|kind| key.replacen(kind, "}:t:", 1));
        of_thread.iter().any(|name| {
            let name = name.strip_prefix(&declared_key.replacen("}:a:", "}:t:", 1));
            name.is_some_and(|rest| rest.is_empty() || is_life(rest) || is_checkpoint(rest))
        })
    };
    let of_list = |declared_key: &str| {
        let list = declared_key.strip_suffix(":members");
        list.is_some_and(|list| key.starts_with(&format!("{list}:of:")))
    };
    let is_list = |declared_key: &str| {
        let bucket = &declared_key[..=declared_key.find('}').unwrap_or_default()];
        let rest = key.strip_prefix(bucket).unwrap_or_default();
        let starts_with = |kinds: &[&str]| kinds.iter().any(|kind| rest.starts_with(kind));
        let is_listed = declared_key.contains("}:c:")
            && starts_with(&[":t:", ":i:", ":j:", ":k:", ":y:", ":z:", ":p:", ":f:"]);
        let is_of_response = ["}:c:", "}:u:", "}:ud"]
            .iter()
            .any(|kind| declared_key.contains(kind))
            && starts_with(&[":u:", ":ue:", ":ud", ":ul:"]);
        [":d", ":d:", ":n", ":g", ":gs", ":gx"].contains(&rest)
            || is_listed
            || is_of_response
            || starts_with(&[":g:", ":o:", ":c:", ":oa:", ":a:", ":v:"])
    };
    declared.iter().any(|declared_key| {
        if is_list(declared_key) {
            return true;
        }
        let is_archive = declared_key.contains("}:a:");
        match key.strip_prefix(declared_key.as_str()) {
            // the declared key itself, or the key with which a script tests whether the slot is moving
            Some("" | ":") => true,
            Some(rest) => is_archive && is_life(rest),
            None if is_archive || declared_key.contains("}:t:") => of_thread(declared_key),
            None => of_list(declared_key),
        }
    })
}

fn keys_of(connection: &mut Connection, command: &[String]) -> Vec<String> {
    if command.len() == 1 {
        return Vec::new();
    }
    let keys = redis::cmd("COMMAND")
        .arg("GETKEYS")
        .arg(command)
        .query::<Vec<String>>(connection);
    match keys {
        Ok(keys) => keys,
        Err(error) if error.to_string().contains("no key arguments") => Vec::new(),
        Err(error) => panic!("{command:?}: {error}"),
    }
}

fn tag(key: &str) -> String {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag);
    match tag {
        Some(tag) if !tag.is_empty() => tag.to_owned(),
        _ => panic!("{key} has no hash tag"),
    }
}

async fn do_everything(room: &Room) {
    let thread = room.subject();
    write_everything(&thread).await;
    read_everything(&thread).await;
    room.advance(thread.policy.ttl);
    assert!(thread.state().await.is_none());
    write_everything(&thread).await;
    keep_in_scopes(room, &thread, 8).await;
    let end = Destroy {
        conditions: Conditions {
            access: Access::All,
            precondition: Some(Precondition::Exists),
            idempotency: Some(numbered_key(0)),
            ..Conditions::default()
        },
        ..thread.end()
    };
    assert!(thread.destroy_by(&end).await.unwrap().existed);
    assert!(thread.destroy_by(&end).await.unwrap().replayed);
    thread.try_merge(&[set("k", "1")]).await.unwrap_err();
    room.advance(thread.policy.tombstone);
    thread.merge(&[set("k", "1")]).await;
    end_and_restore(room, &thread).await;
    change_owners(room).await;
    for is_erased in [false, true] {
        save_and_move(room, is_erased).await;
    }
    count(room, &thread).await;
    keep_a_ledger(room).await;
}

async fn change_owners(room: &Room) {
    let thread = room.subject();
    let [ann, bob] = ["ann", "bob"].map(|text| Owner::new(text).unwrap());
    for owner in [OwnerChange::Bind(&ann), OwnerChange::Set(&bob)] {
        let write = Write {
            owner,
            ..thread.blank()
        };
        thread.write(&write).await.unwrap();
        thread.merge(&[set("k", "1")]).await;
        thread.merge(&[push("list", "1")]).await;
    }
    let (backend, bob) = (&room.backend, bob.tag());
    let listed = backend.list_owned(bob, ThreadOrder::Updated, None, 100);
    assert!(!listed.await.unwrap().threads.is_empty());
    assert!(backend.measure_owned(bob).await.unwrap().threads > 0);
    room.advance(thread.policy.ttl);
    backend
        .list_owned(bob, ThreadOrder::Created, None, 100)
        .await
        .unwrap();
    backend.list_threads(None, 100).await.unwrap();
    thread.destroy().await;
    backend
        .restore(&thread.id, None, &thread.policy)
        .await
        .unwrap();
    erase(room, bob).await;
}

async fn erase(room: &Room, owner: OwnerTag) {
    let backend = &room.backend;
    let tombstone = Duration::from_secs(60);
    let erased = backend.erase_owned(owner, tombstone).await.unwrap();
    assert!(erased.is_some());
    while backend
        .erase_owned(owner, tombstone)
        .await
        .unwrap()
        .is_some()
    {}
    let lives = backend.erased_lives(owner).await.unwrap();
    backend.purge_log(owner, &lives).await.unwrap();
    backend.forget_lives(owner, &lives).await.unwrap();
}

async fn save_and_move(room: &Room, is_erased: bool) {
    let thread = room.subject();
    let backend = &room.backend;
    let ann = Owner::new("ann").unwrap();
    let own = Write {
        owner: OwnerChange::Set(&ann),
        ..thread.blank()
    };
    thread.write(&own).await.unwrap();
    keep_in_scopes(room, &thread, 10).await;
    run_effects(room, &thread).await;
    respond(room, &ScopeId::Thread(thread.id), true).await;
    respond(room, &"tool:a".parse().unwrap(), false).await;
    let duration = Duration::from_secs(60);
    backend.watch(&[thread.id], duration).await.unwrap();
    let conditions = Conditions {
        idempotency: Some(numbered_key(11)),
        ..Conditions::default()
    };
    let free = Conditions::default();
    for conditions in [conditions, free, free] {
        let saved = backend.save_checkpoint(&thread.id, None, &conditions).await;
        saved.unwrap();
    }
    let read = backend.get_checkpoint(&thread.id, Access::All, 2).await;
    assert!(read.unwrap().is_some());
    let blank = thread.blank();
    let restored = backend.restore_checkpoint(&thread.id, 2, &blank).await;
    restored.unwrap();
    let deleted = backend.delete_checkpoint(&thread.id, 2, &free).await;
    deleted.unwrap();
    let rotate = Rotate {
        conditions: Conditions {
            idempotency: Some(numbered_key(12)),
            ..Conditions::default()
        },
        tombstone: thread.policy.tombstone,
    };
    let rotated = thread.store.rotate(&thread.id, &rotate).await.unwrap();
    assert!(rotated.thread.is_some());
    let moved = Subject {
        id: rotated.id,
        ..thread
    };
    if !is_erased {
        assert!(moved.destroy().await.existed);
        return;
    }
    let again = Rotate {
        conditions: Conditions::default(),
        ..rotate
    };
    moved.store.rotate(&moved.id, &again).await.unwrap();
    erase(room, ann.tag()).await;
}

async fn respond(room: &Room, scope: &ScopeId, has_turn: bool) {
    let backend = &room.backend;
    let policy = ScopePolicies::DEFAULT.of(scope);
    let operations = [KvOperation::Increment {
        key: ScopeKey::new("n", KeyRule::Namespaced).unwrap(),
        by: 1,
    }];
    let write = ScopeWrite {
        operations: &operations,
        ..ScopeWrite::new(&policy)
    };
    let text = Bytes::from_static(b"text");
    let bucket = backend.bucket_of_scope(scope);
    for (is_open, write) in [(false, None), (false, Some(&write)), (true, None)] {
        let id = ResponseId::in_bucket(bucket, rand::random());
        let token = TurnToken::random();
        let begin = BeginResponse {
            scope,
            access: Access::All,
            token,
            lease: Duration::from_secs(15),
            kept: Duration::from_secs(600),
            due: Duration::from_secs(600),
            floor: match has_turn {
                true => Floor::Taken,
                false => Floor::None,
            },
            request: Some(&text),
            fingerprint: Fingerprint::of(&[b"request"]),
        };
        for _ in 0..2 {
            backend.begin_response(&id, &begin).await.unwrap();
        }
        let events = [text.clone()];
        backend.append_events(&id, token, 0, &events).await.unwrap();
        let entry = JournalEntry {
            token,
            number: 1,
            entry: &text,
            events: (1, &events),
        };
        backend.journal(&id, scope, &entry, write).await.unwrap();
        backend.read_events(&id, 0, 10).await.unwrap().unwrap();
        let lease = Duration::from_secs(15);
        backend
            .keep_response(&id, scope, token, lease)
            .await
            .unwrap();
        backend.due_responses(&[bucket.into()], 10).await.unwrap();
        backend.get_response(&id).await.unwrap().unwrap();
        if is_open {
            continue;
        }
        let end = EndResponse {
            token: Some(token),
            entries: 1,
            events: (2, &events),
            answer: &text,
            kept: Duration::from_secs(600),
            events_kept: Duration::from_secs(600),
        };
        let operations = [
            Operation::Append(HistoryItem {
                id: "of-an-end".parse().unwrap(),
                value: json("1"),
            }),
            push("said", "1"),
        ];
        let to_thread = Write {
            operations: &operations,
            ..Write::new(&ThreadPolicy::THREAD)
        };
        let write_to_thread = scope.thread().map(|_| EndWrite::Thread(&to_thread));
        for _ in 0..2 {
            let write = write.map(EndWrite::Scope).or(write_to_thread);
            backend.end_response(&id, scope, &end, write).await.unwrap();
        }
        if write.is_none() {
            assert!(backend.delete_response(&id).await.unwrap());
        }
    }
}

async fn end_and_restore(room: &Room, thread: &Subject) {
    let (backend, id) = (&room.backend, &thread.id);
    let bucket = backend.bucket_of(id);
    let duration = Duration::from_secs(60);
    backend.watch(&[*id], duration).await.unwrap();
    thread.merge(&[set("k", "2")]).await;
    keep_in_scopes(room, thread, 9).await;
    run_effects(room, thread).await;
    let completed = Completed {
        session: "sess_1".into(),
        status: 200,
        duration_ms: 1,
    };
    backend.log_completed(id, &completed).await.unwrap();
    room.advance(thread.policy.ttl);
    let due = backend.due(&[bucket], 10).await.unwrap();
    assert!(due.ids[0].contains(id));
    backend.end_due(bucket, &due.ids[0]).await.unwrap();
    let first = backend.get_archive(id, None).await.unwrap().unwrap();
    backend.restore(id, None, &thread.policy).await.unwrap();
    room.advance(thread.policy.ttl);
    // end a later life (incarnation of the thread), so that its archive replaces the archive of the first life
    thread.merge(&[set("k", "3")]).await;
    assert!(thread.destroy().await.existed);
    let life = first.head.life;
    assert!(backend.get_final(id, life).await.unwrap().is_some());
    room.advance(30 * Duration::from_secs(86_400));
    backend.tidy(&[bucket], &[None]).await.unwrap();
    backend.log_heads().await.unwrap();
}

async fn run_effects(room: &Room, thread: &Subject) {
    let (backend, id) = (&room.backend, &thread.id);
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: Duration::from_secs(600),
        exclusive: false,
        waits: false,
        idempotency: None,
    };
    let turn = Some(take.token);
    backend.take_turn(id, Access::All, &take).await.unwrap();
    let (tool, hash) = ("tool".parse().unwrap(), InputHash::of(None));
    let mut settles = Vec::new();
    for effect in ["a", "b", "c"] {
        let effect_id = effect.parse().unwrap();
        let begin = BeginEffect {
            id: &effect_id,
            tool: &tool,
            hash: &hash,
            idempotent: false,
            retry: None,
            turn,
            idempotency: None,
            fence: Fence::random(),
            key: RunKey::random(),
        };
        let granted = backend.begin_effect(id, Access::All, &begin).await;
        settles.push(SettleEffect {
            id: effect_id,
            fence: granted.unwrap().fence,
            outcome: Outcome::Result(json("1")),
        });
    }
    let settled = backend.settle_effect(id, Access::All, &settles[0], None);
    settled.await.unwrap();
    let item = HistoryItem {
        id: "of-an-effect".parse().unwrap(),
        value: json("1"),
    };
    let operations = [
        Operation::Settle(settles[1].clone()),
        Operation::Append(item),
    ];
    thread.merge(&operations).await;
    let found = backend.get_effect(id, Access::All, &settles[1].id).await;
    assert!(found.unwrap().is_some());
    let listed = backend.list_effects(id, Access::All, None, None, 10).await;
    assert_eq!(listed.unwrap().len(), 3);
    let renewed = backend.renew_turn(id, Access::All, take.token, take.ttl);
    renewed.await.unwrap();
    backend
        .end_turn(id, Access::All, take.token, Release::Complete)
        .await
        .unwrap();
    let turn = backend.get_turn(id, Access::All).await.unwrap();
    assert_eq!(turn.held, None);
}

async fn keep_in_scopes(room: &Room, thread: &Subject, number: u64) {
    let backend = &room.backend;
    let name = format!("session:{}", thread.id);
    for scope in [ScopeId::Thread(thread.id), name.parse().unwrap()] {
        let policy = ScopePolicies::DEFAULT.of(&scope);
        let key = |text| ScopeKey::new(text, KeyRule::Namespaced).unwrap();
        let set = |text, ttl| KvOperation::Set {
            key: key(text),
            value: ScopeValue::new("1").unwrap(),
            ttl,
            if_absent: false,
        };
        let tasks = TasksChange {
            new: TaskList::default(),
            expected: None,
        };
        let record = RecordChange {
            new: "r".into(),
            expected: None,
        };
        let write = ScopeWrite {
            operations: &[
                set("a", Some(Duration::from_secs(1))),
                set("b", None),
                KvOperation::Increment {
                    key: key("b"),
                    by: 1,
                },
                KvOperation::Delete { key: key("a") },
                set("a", Some(Duration::from_secs(1))),
            ],
            tasks: Some(&tasks),
            record: Some(&record),
            history: &[HistoryItem {
                id: "one".parse().unwrap(),
                value: json("{}"),
            }],
            conditions: Conditions {
                idempotency: Some(numbered_key(number)),
                ..Conditions::default()
            },
            ..ScopeWrite::new(&policy)
        };
        backend.write_scope(&scope, &write).await.unwrap();
        assert!(backend.write_scope(&scope, &write).await.unwrap().replayed);
        room.advance(Duration::from_secs(1));
        let all = ScopeParts {
            values: &[key("a")],
            keys: true,
            tasks: true,
            record: true,
            ..ScopeParts::default()
        };
        let view = backend.read_scope(&scope, &all).await.unwrap().unwrap();
        assert_eq!(view.key_count, 1);
        let from = HistoryFrom::After(0);
        let page = backend
            .read_history(&scope, Reader::ALL, from, 9)
            .await
            .unwrap();
        assert_eq!(page.unwrap().items.len(), 1);
        backend
            .end_scope(&scope, &ScopeEnd::new(Access::All))
            .await
            .unwrap();
        let again = ScopeWrite {
            conditions: Conditions {
                idempotency: None,
                ..write.conditions
            },
            ..write
        };
        backend.write_scope(&scope, &again).await.unwrap();
    }
    let listing = Listing {
        name: "sessions",
        owner: Some("me"),
    };
    backend.list_add(&listing, &name, 1, 2).await.unwrap();
    let again = [(name.clone(), 3)];
    backend.list_reschedule("sessions", &again).await.unwrap();
    backend.list_remove("sessions", &[name]).await.unwrap();
}

async fn keep_entries(room: &Room, name: &str) {
    let space = room.space(name);
    space.set_default(seconds(60)).await;
    for key in ["a", "b", "c", "d"] {
        space.put(key, "1").await;
        space.put_for(key, "22", seconds(100)).await;
    }
    room.advance(Duration::from_secs(60));
    assert!(space.read("a", Reading::Use).await.is_some());
    assert!(space.get("b").await.is_some());
    assert!(space.delete("b").await);
    room.advance(Duration::from_secs(60));
    assert_eq!(space.keys("", 10).await, ["a"]);
    assert_eq!(space.counts().await, (1, 2));
    space.put("c", "1").await;
    assert_eq!(space.destroy().await, 2);
}

async fn count(room: &Room, thread: &Subject) {
    let (digest, scope) = (Fingerprint(rand::random()), ScopeId::Thread(thread.id));
    let rates = RateName::ALL.map(|name| (name, "1/1m".parse().unwrap()));
    for counted in [Counted::Address(&digest), Counted::Scope(&scope)] {
        assert!(
            room.backend
                .take_rates(counted, &rates)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            room.backend
                .take_rates(counted, &rates)
                .await
                .unwrap()
                .is_some()
        );
        room.backend.give_back_rates(counted, &rates).await.unwrap();
    }
}

async fn keep_a_ledger(room: &Room) {
    let backend = &room.backend;
    let duration = Duration::from_secs(60);
    backend.hold("c", 4, "me", duration).await.unwrap();
    let heads = backend.log_heads().await.unwrap();
    backend.open_ledger("c", &heads.positions).await.unwrap();
    let holding = Holding {
        consumer: "c",
        slot: 0,
        holder: "me",
        erasures: 0,
    };
    let event = EventId {
        bucket: 0,
        position: Position { ms: 1, seq: 0 },
    };
    let change = LedgerChange {
        parked: vec![(event, "{}".into())],
        ..LedgerChange::default()
    };
    assert!(backend.commit(&holding, &change).await.unwrap());
    let replayed = backend.replay("c", &[(event, "{}".into())]).await;
    assert_eq!(replayed.unwrap(), 1);
    backend.forget_events("c", &[(event, None)]).await.unwrap();
    backend.release("c", "me").await.unwrap();
    backend.drop_ledger("c").await.unwrap();
}

async fn write_everything(thread: &Subject) {
    let long = format!("[{}0]", "\"element\",".repeat(1_000));
    let metadata = MetadataChange {
        new: json(r#"{"m":1}"#),
        old: Some(json("{}")),
    };
    let written = thread
        .write(&Write {
            operations: &[
                set("k", "1"),
                set("long", &long),
                push_window("long", "1", 500),
                push("list", "1"),
                increment("n", i64::MAX),
                delete("k"),
            ],
            guards: &[guard_not_an_object("k")],
            metadata: Some(&metadata),
            ttl: Some(thread.policy.ttl),
            describe: true,
            conditions: Conditions {
                precondition: Some(Precondition::Version(0)),
                ..Conditions::default()
            },
            ..thread.blank()
        })
        .await;
    written.unwrap();
    thread.merge(&[set("k", "1")]).await;
    for index in 0..60 {
        let element = format!("\"{}\"", "x".repeat(index * 3));
        thread.merge(&[push_window("pushed", &element, 20)]).await;
    }
    thread.merge(&[push_window("pushed", "1", 2)]).await;
    for number in 0..3 {
        let key = numbered_key(1 + number % 2);
        thread.merge_once(key, &[increment("n", -1)]).await.unwrap();
    }
    thread.try_merge(&[push("n", "1")]).await.unwrap_err();
    thread.merge(&[Operation::Clear, set("a", &long)]).await;
    thread.merge(&[set("a", "1")]).await;
}

async fn read_everything(thread: &Subject) {
    let (store, id) = (&thread.store, &thread.id);
    thread.merge(&[push("list", "1"), set("k", "1")]).await;
    assert!(store.get_state(id, Reader::ALL).await.unwrap().is_some());
    let keys = [key("k"), key("list")];
    assert!(
        store
            .get_values(id, Reader::ALL, &keys)
            .await
            .unwrap()
            .is_some()
    );
    assert!(thread.value("list").await.is_some());
    assert!(thread.part("list", Some(Slice::Tail(1))).await.is_some());
    assert!(store.get_keys(id, Reader::ALL).await.unwrap().is_some());
    assert!(thread.exists().await);
}
