use std::time::Duration;

use threadkeep_domain::scope::{KvAnswer, KvOperation, Removal, ScopeWrite};
use threadkeep_domain::{Conditions, Life, Precondition, Refusal, Stamp};

use super::room::{Room, numbered_key};
use super::scope_room::{Scope, delete, increment, item, set, set_if_absent};

fn unmet(current: Stamp) -> Refusal {
    Refusal::VersionMismatch { current }
}

async fn each_accepted_write_is_one_version(room: Room) {
    let session = room.session();

    let mut stamps = vec![session.run(&[]).await.stamp];
    stamps.push(session.run(&[set("a", "1"), set("b", "2")]).await.stamp);
    stamps.push(session.run(&[delete("absent")]).await.stamp);
    stamps.push(session.run(&[KvOperation::Clear]).await.stamp);
    stamps.push(session.put_tasks(&["t"], None).await.unwrap().stamp);
    stamps.push(session.put_record("r", None).await.unwrap().stamp);
    stamps.push(session.clear_history().await.stamp);
    session.add(&[item("1", "1")]).await;
    stamps.push(session.stamp().await);
    stamps.push(session.seal().await.stamp);

    let life = stamps[0].life;
    let expected = (1..=9).map(|version| Stamp { version, life });
    assert_eq!(stamps, expected.collect::<Vec<_>>());
    assert_eq!(session.stamp().await, stamps[8]);
}

async fn a_refused_write_and_a_replay_do_not_count(room: Room) {
    let session = room.session();
    let first = session.run_once(numbered_key(1), &[set("k", "text")]).await;
    let first = first.unwrap().stamp;

    assert!(session.try_run(&[increment("k", 1)]).await.is_err());
    let unmet = session.run_if(Precondition::Version(7), &[]).await;
    assert!(unmet.is_err());
    let replay = session.run_once(numbered_key(1), &[set("k", "text")]).await;
    assert_eq!(replay.unwrap().stamp, first);

    assert_eq!(session.stamp().await, first);
}

async fn sets_if_absent_of_existing_keys_change_nothing(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[crate::conformance::room::set("k", "1")])
        .await;
    for scope in [room.session(), room.tool(), room.scope_of(&thread)] {
        scope.run(&[set("a", "1"), set("b", "")]).await;
        scope.add(&[item("1", "1")]).await;
        let before = scope.whole().await;
        let refused = [set_if_absent("a", "2"), set_if_absent("b", "2")];

        room.advance(Duration::from_secs(1));
        let first = scope.run_once(numbered_key(1), &refused).await.unwrap();
        let repeated = ScopeWrite {
            operations: &refused,
            history: &[item("1", "1")],
            ..scope.blank()
        };
        let second = scope.write(&repeated).await.unwrap();

        assert_eq!(first.answers, [KvAnswer::Set(false); 2]);
        assert_eq!(second.answers, first.answers);
        assert_eq!(first.stamp.version, 2);
        assert_eq!((first.keys, first.kv_bytes), (2, 1));
        assert_eq!(scope.whole().await, before);

        scope.run(&[delete("a")]).await;
        let replay = scope.run_once(numbered_key(1), &refused).await.unwrap();
        assert!(replay.replayed);
        assert_eq!(replay.answers, first.answers);
        let one = scope.run(&refused).await;
        assert_eq!(one.answers, [KvAnswer::Set(true), KvAnswer::Set(false)]);
        assert_eq!(one.stamp.version, 4);
    }
}

async fn a_set_without_effect_beside_a_change_is_one_version(room: Room) {
    let session = room.session();
    session.run(&[set("a", "1")]).await;
    let refused = || set_if_absent("a", "2");

    let mut versions = Vec::new();
    for operation in [set("b", ""), delete("absent"), increment("n", 0)] {
        let written = session.run(&[refused(), operation]).await;
        versions.push(written.stamp.version);
    }
    let operations = [refused()];
    let write = ScopeWrite {
        operations: &operations,
        history: &[item("1", "1")],
        ..session.blank()
    };
    versions.push(session.write(&write).await.unwrap().stamp.version);

    assert_eq!(versions, [2, 3, 4, 5]);
    assert_eq!(session.value("a").await.unwrap(), "1");
}

async fn times_come_from_the_first_and_the_last_write(room: Room) {
    let session = room.session();
    session.run(&[set("a", "1")]).await;
    let first = session.view().await.unwrap();

    room.advance(Duration::from_secs(100));
    session.run(&[set("a", "2")]).await;
    room.advance(Duration::from_secs(100));
    let last = session.view().await.unwrap();

    assert_eq!(first.created_ms, first.updated_ms);
    assert_eq!(last.created_ms, first.created_ms);
    assert!((100_000..105_000).contains(&(last.updated_ms - last.created_ms)));
}

async fn a_version_precondition_must_match(room: Room) {
    let session = room.session();

    let none = session.run_if(Precondition::Version(1), &[]).await;
    assert_eq!(none, Err(unmet(Stamp::default())));
    let first = session.run_if(Precondition::Version(0), &[]).await;
    let first = first.unwrap().stamp;
    let again = session.run_if(Precondition::Version(0), &[]).await;
    assert_eq!(again, Err(unmet(first)));
    let second = session.run_if(Precondition::Version(1), &[]).await;
    assert_eq!(second.unwrap().stamp.version, 2);
}

async fn an_exists_precondition_needs_a_scope(room: Room) {
    let session = room.session();

    let none = session.run_if(Precondition::Exists, &[set("k", "1")]).await;
    assert_eq!(none, Err(unmet(Stamp::default())));
    assert!(!session.exists().await);
    session.run(&[]).await;

    let existing = session.run_if(Precondition::Exists, &[set("k", "1")]).await;
    assert_eq!(existing.unwrap().stamp.version, 2);
}

async fn a_stamp_precondition_matches_version_and_life(room: Room) {
    let session = room.session();
    let first = session.run(&[]).await.stamp;
    let other_life = Stamp {
        life: Life(first.life.0 ^ 1),
        ..first
    };

    let other = session.run_if(Precondition::Stamp(other_life), &[]).await;
    assert_eq!(other, Err(unmet(first)));
    let same = session.run_if(Precondition::Stamp(first), &[]).await;
    assert_eq!(same.unwrap().stamp.version, 2);
    let stale = session.run_if(Precondition::Stamp(first), &[]).await;
    assert!(stale.is_err());

    session.end().await;
    let second_life = session.run(&[]).await.stamp;
    let earlier = session.run_if(Precondition::Stamp(first), &[]).await;
    assert_eq!(earlier, Err(unmet(second_life)));
}

async fn an_unmet_precondition_is_reported_before_failing_operations(room: Room) {
    let session = room.session();
    session.run(&[set("t", "text")]).await;
    let before = session.whole().await;
    let write = ScopeWrite {
        operations: &[increment("t", 1)],
        history: &[item("1", "1")],
        removes: Some(Removal::All),
        seals: true,
        conditions: Conditions {
            precondition: Some(Precondition::Version(5)),
            ..Conditions::default()
        },
        ..session.blank()
    };

    let refused = session.write(&write).await;

    let is_unmet = matches!(refused, Err(Refusal::VersionMismatch { .. }));
    assert!(is_unmet, "{refused:?}");
    assert_eq!(session.whole().await, before);
}

async fn one_of_two_concurrent_writers_on_a_version_wins(room: Room) {
    let session = room.session();
    let stamp = session.run(&[]).await.stamp;
    let write = async |scope: &Scope, text| {
        scope
            .run_if(Precondition::Stamp(stamp), &[set("k", text)])
            .await
    };

    let (one, other) = tokio::join!(write(&session, "1"), write(&session, "2"));

    assert_ne!(one.is_ok(), other.is_ok());
    assert_eq!(session.version().await, 2);
}

super::over_every_store! {
    each_accepted_write_is_one_version,
    a_refused_write_and_a_replay_do_not_count,
    sets_if_absent_of_existing_keys_change_nothing,
    a_set_without_effect_beside_a_change_is_one_version,
    times_come_from_the_first_and_the_last_write,
    a_version_precondition_must_match,
    an_exists_precondition_needs_a_scope,
    a_stamp_precondition_matches_version_and_life,
    an_unmet_precondition_is_reported_before_failing_operations,
    one_of_two_concurrent_writers_on_a_version_wins,
}
