use threadkeep_domain::{Conditions, Life, Precondition, Refusal, Stamp};
use threadkeep_store::Destroy;

use super::room::{Room, Subject, set};

fn current_version<T: std::fmt::Debug>(result: Result<T, Refusal>) -> u64 {
    match result {
        Err(Refusal::VersionMismatch { current }) => current.version,
        other => panic!("{other:?}"),
    }
}

async fn destroy_if(thread: &Subject, precondition: Precondition) -> Result<bool, Refusal> {
    let destroy = Destroy {
        conditions: Conditions {
            precondition: Some(precondition),
            ..Conditions::default()
        },
        ..thread.end()
    };
    let destroyed = thread.destroy_by(&destroy).await?;
    Ok(destroyed.existed)
}

async fn exists_holds_for_any_version_and_for_no_absent_thread(room: Room) {
    let thread = room.subject();

    let absent = thread.merge_if(Precondition::Exists, &[]).await;
    thread.merge(&[]).await;
    let present = thread.merge_if(Precondition::Exists, &[]).await.unwrap();

    assert_eq!(current_version(absent), 0);
    assert_eq!(present.stamp.version, 2);
}

async fn version_0_holds_only_for_an_absent_thread(room: Room) {
    let thread = room.subject();
    let must_not_exist = Precondition::Version(0);

    let first = thread.merge_if(must_not_exist, &[set("k", "1")]).await;
    let second = thread.merge_if(must_not_exist, &[set("k", "2")]).await;

    assert_eq!(first.unwrap().stamp.version, 1);
    assert_eq!(current_version(second), 1);
    assert_eq!(thread.value("k").await.unwrap(), "1");
}

async fn a_version_holds_only_for_itself(room: Room) {
    let thread = room.subject();
    let absent = thread.merge_if(Precondition::Version(1), &[]).await;
    thread.merge(&[]).await;
    thread.merge(&[]).await;

    let older = thread.merge_if(Precondition::Version(1), &[]).await;
    let newer = thread.merge_if(Precondition::Version(3), &[]).await;
    let huge = thread.merge_if(Precondition::Version(u64::MAX), &[]).await;
    let same = thread.merge_if(Precondition::Version(2), &[]).await;

    assert_eq!(current_version(absent), 0);
    assert_eq!(current_version(older), 2);
    assert_eq!(current_version(newer), 2);
    assert_eq!(current_version(huge), 2);
    assert_eq!(same.unwrap().stamp.version, 3);
}

async fn a_stamp_holds_for_its_version_in_its_life(room: Room) {
    let thread = room.subject();
    let stamp = thread.merge(&[]).await.stamp;
    let other_life = Stamp {
        life: Life(stamp.life.0 ^ 1),
        ..stamp
    };

    let other = thread.merge_if(Precondition::Stamp(other_life), &[]).await;
    let same = thread.merge_if(Precondition::Stamp(stamp), &[]).await;
    let stale = thread.merge_if(Precondition::Stamp(stamp), &[]).await;

    assert_eq!(current_version(other), 1);
    assert_eq!(same.unwrap().stamp.version, 2);
    assert_eq!(current_version(stale), 2);
}

async fn a_stamp_of_an_earlier_life_never_matches(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[]).await.stamp;
    room.advance(thread.policy.ttl);

    let absent = thread.merge_if(Precondition::Stamp(before), &[]).await;
    let after = thread.merge(&[]).await.stamp;
    let reborn = thread.merge_if(Precondition::Stamp(before), &[]).await;

    assert_eq!(current_version(absent), 0);
    assert_eq!(after.version, before.version);
    assert_ne!(after.life, before.life);
    assert_eq!(current_version(reborn), 1);
}

async fn an_end_has_preconditions_too(room: Room) {
    let thread = room.subject();
    let absent = destroy_if(&thread, Precondition::Exists).await;
    let stale = thread.merge(&[]).await.stamp;
    let stamp = thread.merge(&[]).await.stamp;

    assert_eq!(current_version(absent), 0);
    for unmet in [
        Precondition::Version(0),
        Precondition::Version(1),
        Precondition::Stamp(stale),
    ] {
        assert_eq!(current_version(destroy_if(&thread, unmet).await), 2);
    }
    assert!(thread.exists().await);
    assert_eq!(
        destroy_if(&thread, Precondition::Stamp(stamp)).await,
        Ok(true)
    );
    assert_eq!(
        destroy_if(&thread, Precondition::Version(0)).await,
        Ok(false)
    );
    assert_eq!(
        current_version(destroy_if(&thread, Precondition::Exists).await),
        0
    );
}

async fn a_precondition_is_checked_before_operations_and_limits(room: Room) {
    let thread = room.subject();
    let too_large = format!("\"{}\"", "x".repeat(1_048_576));

    let refused = thread
        .merge_if(
            Precondition::Exists,
            &[set("k", &too_large), super::room::push("k", "1")],
        )
        .await;

    assert_eq!(current_version(refused), 0);
}

over_every_store! {
    exists_holds_for_any_version_and_for_no_absent_thread,
    version_0_holds_only_for_an_absent_thread,
    a_version_holds_only_for_itself,
    a_stamp_holds_for_its_version_in_its_life,
    a_stamp_of_an_earlier_life_never_matches,
    an_end_has_preconditions_too,
    a_precondition_is_checked_before_operations_and_limits,
}
