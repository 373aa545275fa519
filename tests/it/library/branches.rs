use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::SET_COOKIE;
use serde_json::json;
use threadkeep::Thread;
use threadkeep_domain::{Access, Refusal};
use threadkeep_service::{CheckpointService, ServiceError};
use threadkeep_web::ApiError;

use super::{Bench, header, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::{Room, Subject, set};
use crate::support::until;

impl Bench {
    fn with_checkpoints(room: Room) -> Self {
        let (threads, _) = room.services();
        let checkpoints = CheckpointService::new(Arc::clone(&room.backend) as _, threads);
        let bench = Self::with_turns(room);
        Self {
            threads: bench.threads.clone().with_checkpoints(checkpoints),
            ..bench
        }
    }
}

async fn a_checkpoint_includes_queued_writes_and_a_restore_undoes_later_ones(room: Room) {
    let bench = Bench::with_checkpoints(room);
    let handler = async |thread: Thread| {
        thread.state().set("k", 1)?;
        thread.set_metadata(json!({"title": "one"}))?;
        let saved = thread.checkpoint(Some("one")).await?;
        assert_eq!((saved.number, saved.version), (1, 1));
        thread.state().set("k", 2)?;
        thread.set_metadata(json!({"title": "two"}))?;
        thread.checkpoint(None).await?;
        thread.state().set("k", 3)?;

        let receipt = thread.restore(1).await?;

        assert_eq!(receipt.version, 4);
        assert_eq!(thread.version(), Some(4));
        assert_eq!(thread.state().get::<i32>("k").await?, Some(1));
        let metadata: serde_json::Value = thread.metadata().await?;
        assert_eq!(metadata, json!({"title": "one"}));
        let shown = thread.checkpoints().await?;
        let shown: Vec<_> = shown.iter().map(|head| head.number).collect();
        assert_eq!(shown, [2, 1]);
        thread.delete_checkpoint(2).await?;
        let unknown = thread.restore(2).await.unwrap_err();
        assert!(matches!(
            unknown,
            ApiError::Service(ServiceError::Refused(Refusal::CheckpointNotFound))
        ));
        let bad = thread.checkpoint(Some("")).await.unwrap_err();
        assert_eq!(bad.code(), "invalid_parameter");
        thread.state().set("later", true)?;
        Ok::<_, ApiError>("done")
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), 200);
    let id = id_of(&response).unwrap();
    assert_eq!(bench.state(&id).await, r#"{"k":1,"later":true}"#);
}

async fn a_rotation_moves_the_thread_and_the_request_continues_with_the_new_id(room: Room) {
    let old = Subject::of(Arc::clone(&room.store));
    old.merge(&[set("cart", "[1]")]).await;
    let bench = Bench::with_checkpoints(room);
    let handler = async |thread: Thread| {
        let before = thread.id();
        thread.state().push("cart", 2)?;
        let after = thread.rotate().await?;
        assert_eq!(thread.id(), after);
        assert_ne!(before, after);
        assert_eq!(
            thread.state().get::<Vec<i32>>("cart").await?,
            Some(vec![1, 2])
        );
        thread.state().set("user", "ada")?;
        Ok::<_, ApiError>("welcome")
    };

    let response = bench.call_as(&old.id, handler).await;

    assert_eq!(response.status(), 200);
    let new = id_of(&response).unwrap();
    assert_ne!(new, old.id);
    let cookie = header(&response, SET_COOKIE.as_str()).unwrap();
    assert!(cookie.contains(new.as_str()), "{cookie}");
    assert_eq!(bench.state(&new).await, r#"{"cart":[1,2],"user":"ada"}"#);
    assert!(!old.exists().await);
    let late = old.try_merge(&[]).await;
    assert_eq!(late, Err(Refusal::Destroyed));
}

async fn a_rotation_before_the_first_write_changes_the_id_too(room: Room) {
    let planted = Subject::of(Arc::clone(&room.store));
    let bench = Bench::with_checkpoints(room);
    let handler = async |thread: Thread| {
        thread.state().set("user", "ada")?;
        thread.rotate().await?;
        Ok::<_, ApiError>("welcome")
    };

    let response = bench.call_as(&planted.id, handler).await;

    let new = id_of(&response).unwrap();
    assert_ne!(new, planted.id);
    assert_eq!(bench.state(&new).await, r#"{"user":"ada"}"#);
    assert!(!planted.exists().await);
}

async fn a_turn_follows_its_thread_to_a_new_id(room: Room) {
    let bench = Bench::with_checkpoints(room);
    let backend = Arc::clone(&bench.room.backend);
    let handler = move |thread: Thread| {
        let backend = Arc::clone(&backend);
        async move {
            let turn = thread.turn(Duration::from_secs(1)).exclusive().await?;
            let id = thread.rotate().await?;
            // sleep for longer than the turn's duration of one second, so that the turn exists only if it was renewed;
            // then wait, because a busy machine may renew the turn late
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            let turn_state = async || backend.get_turn(&id, Access::All).await.unwrap();
            until(async || turn_state().await.held.is_some()).await;
            thread.state().set("k", 1)?;
            thread.flush().await?;
            turn.end().await?;
            assert_eq!(turn_state().await.held, None);
            Ok::<_, ApiError>("done")
        }
    };

    assert_eq!(bench.call(handler).await.status(), 200);
}

over_every_store!(
    a_checkpoint_includes_queued_writes_and_a_restore_undoes_later_ones,
    a_rotation_moves_the_thread_and_the_request_continues_with_the_new_id,
    a_rotation_before_the_first_write_changes_the_id_too,
    a_turn_follows_its_thread_to_a_new_id,
);
