use std::time::Duration;

use threadkeep_domain::scope::{
    KeyRule, KvOperation, NewTask, ScopeId, ScopeKey, ScopePolicies, ScopeValue, ScopeWrite,
    TaskList, TaskStatus, TasksChange,
};
use threadkeep_domain::{Event, Position, Stamp};

use super::room::{Room, set};
use super::story::words;

const LONG: Duration = Duration::from_secs(10_000);

fn put(key: &str, value: &str) -> KvOperation {
    KvOperation::Set {
        key: ScopeKey::new(key, KeyRule::Free).unwrap(),
        value: ScopeValue::new(value).unwrap(),
        ttl: None,
        if_absent: true,
    }
}

fn delete(key: &str) -> KvOperation {
    KvOperation::Delete {
        key: ScopeKey::new(key, KeyRule::Free).unwrap(),
    }
}

fn one_task() -> TasksChange {
    let task = NewTask {
        id: None,
        content: "see to it".into(),
        status: TaskStatus::Pending,
        active_form: None,
    };
    TasksChange {
        new: TaskList::new(vec![task]).unwrap(),
        expected: None,
    }
}

impl Room {
    async fn write_to(
        &self,
        scope: &ScopeId,
        operations: &[KvOperation],
        tasks: Option<&TasksChange>,
    ) -> Stamp {
        let policy = ScopePolicies::DEFAULT.of(scope);
        let write = ScopeWrite {
            operations,
            tasks,
            ..ScopeWrite::new(&policy)
        };
        let written = self.backend.write_scope(scope, &write).await;
        written.unwrap().stamp
    }

    async fn logged_events_of(&self, scope: &ScopeId) -> Vec<Event> {
        let mut logged = Vec::new();
        for bucket in 0..self.backend.buckets() {
            let events = self.log(bucket, Position::default()).await;
            logged.extend(events.into_iter().filter(|event| event.subject == *scope));
        }
        logged
    }

    async fn watch_all_for_long(&self) {
        self.backend.watch_all(LONG).await.unwrap();
        // the next event must get a position in a later millisecond
        self.advance(Duration::from_millis(1));
    }
}

fn formatted(events: &[Event]) -> Vec<String> {
    events.iter().map(words).collect()
}

async fn scope_changes_are_logged_while_everything_is_watched(room: Room) {
    let scope: ScopeId = "session:of \"mine\"/é".replace(' ', "-").parse().unwrap();
    room.write_to(&scope, &[put("before", "")], None).await;
    room.watch_all_for_long().await;

    room.write_to(
        &scope,
        &[put("é", "1"), put("", "1"), put("a\n\"", "1")],
        None,
    )
    .await;
    let tasks = one_task();
    room.write_to(&scope, &[], Some(&tasks)).await;
    let both = [delete("é"), delete("absent"), put("", "2")];
    let stamp = room.write_to(&scope, &both, Some(&tasks)).await;
    room.write_to(&scope, &[delete("absent")], None).await;
    room.write_to(&scope, &[put("", "3")], None).await;
    room.write_to(&scope, &[KvOperation::Clear, put("x", "")], None)
        .await;

    let events = room.logged_events_of(&scope).await;
    assert_eq!(
        formatted(&events),
        [
            r#"#1 v2 kv ["","a\n\"","é"]"#,
            "#2 v3 tasks",
            r#"#3 v4 kv ["é"]"#,
            "#4 v4 tasks",
            r#"#5 v6 kv ["","a\n\"","before","x"]"#,
        ]
    );
    assert_eq!(events[2].life, stamp.life);
    assert_eq!(events[2].thread(), None);
}

async fn changes_of_a_threads_scope_are_numbered_with_those_of_the_thread(room: Room) {
    let thread = room.subject();
    let scope = ScopeId::Thread(thread.id);
    thread.merge(&[set("k", "1")]).await;
    room.watch_all_for_long().await;

    let stamp = room
        .write_to(&scope, &[put("a", "1")], Some(&one_task()))
        .await;
    thread.merge(&[set("k", "2")]).await;
    room.write_to(&scope, &[delete("a")], None).await;
    thread.destroy().await;

    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k"]"#,
            r#"#2 v1 kv ["a"]"#,
            "#3 v1 tasks",
            r#"#4 v2 updated ["k"]"#,
            r#"#5 v2 kv ["a"]"#,
            "#6 v2 destroyed",
        ]
    );
    assert_eq!(room.logged_events_of(&scope).await[1].life, stamp.life);
}

async fn scope_changes_are_not_logged_while_only_a_thread_is_watched(room: Room) {
    let thread = room.subject();
    let scopes = [ScopeId::Thread(thread.id), "tool:quiet".parse().unwrap()];
    thread.merge(&[set("k", "1")]).await;
    room.watch(&thread, LONG).await;

    for scope in &scopes {
        room.write_to(scope, &[put("a", "1")], Some(&one_task()))
            .await;
    }

    assert_eq!(room.story(&thread).await, [r#"#1 v1 created ["k"]"#]);
    assert!(room.logged_events_of(&scopes[1]).await.is_empty());
}

super::over_every_store!(
    scope_changes_are_logged_while_everything_is_watched,
    changes_of_a_threads_scope_are_numbered_with_those_of_the_thread,
    scope_changes_are_not_logged_while_only_a_thread_is_watched,
);
