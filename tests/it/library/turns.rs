use std::sync::Arc;
use std::time::Duration;

use threadkeep::Thread;
use threadkeep_domain::{Access, Refusal, TakeTurn, TurnToken};
use threadkeep_service::{EffectService, ServiceError, TurnService};
use threadkeep_web::ApiError;

use super::{Bench, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;
use crate::support::until;

const TTL: Duration = Duration::from_secs(30);

impl Bench {
    pub(super) fn with_turns(room: Room) -> Self {
        let (threads, _) = room.services();
        let effects = EffectService::new(Arc::clone(&room.backend) as _, threads.clone());
        let turns = TurnService::new(Arc::clone(&room.backend) as _, threads, Arc::default());
        let bench = Self::with_scopes(room);
        Self {
            threads: bench.threads.clone().with_turns(turns, effects),
            ..bench
        }
    }
}

fn is_refused_by(error: &ApiError, is_expected: impl Fn(&Refusal) -> bool) -> bool {
    matches!(error, ApiError::Service(ServiceError::Refused(refusal)) if is_expected(refusal))
}

async fn dropping_a_turn_ends_it(room: Room) {
    let backend = Arc::clone(&room.backend);
    let bench = Bench::with_turns(room);
    let handler = async |thread: Thread| {
        let turn = thread.turn(TTL).exclusive().await?;
        thread.state().push("list", 1)?;
        thread.flush().await?;
        let second = thread.turn(TTL).await.unwrap_err();
        assert!(is_refused_by(&second, |refusal| matches!(
            refusal,
            Refusal::TurnTaken { .. }
        )));
        drop(turn);
        thread.turn(TTL).wait(TTL).await?.end().await?;
        thread.state().push("list", 2)?;
        Ok::<_, ApiError>("done")
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), 200);
    let id = id_of(&response).unwrap();
    assert_eq!(bench.state(&id).await, r#"{"list":[1,2]}"#);
    let turn = backend.get_turn(&id, Access::All).await.unwrap();
    assert_eq!((turn.number, turn.held), (2, None));
}

async fn a_turn_renews_itself_while_it_is_held(room: Room) {
    let bench = Bench::with_turns(room);
    let backend = Arc::clone(&bench.room.backend);
    let handler = move |thread: Thread| {
        let backend = Arc::clone(&backend);
        async move {
            let turn = thread.turn(Duration::from_secs(1)).await?;
            // sleep for longer than the turn's duration of one second, so that the turn exists only if it was renewed;
            // then wait, because a busy machine may renew the turn late
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            let turn_state = async || backend.get_turn(&thread.id(), Access::All).await.unwrap();
            until(async || turn_state().await.held.is_some()).await;
            turn.end().await?;
            assert_eq!(turn_state().await.held, None);
            Ok::<_, ApiError>("done")
        }
    };

    assert_eq!(bench.call(handler).await.status(), 200);
}

async fn writes_of_a_lost_turn_are_refused(room: Room) {
    let bench = Bench::with_turns(room);
    let (backend, clock) = (Arc::clone(&bench.room.backend), bench.room.clock.clone());
    let handler = move |thread: Thread| {
        let (backend, clock) = (Arc::clone(&backend), clock.clone());
        async move {
            let turn = thread.turn(TTL).await?;
            thread.state().set("k", 1)?;
            thread.flush().await?;
            clock.advance(TTL);
            let later = TakeTurn {
                token: TurnToken::random(),
                ttl: TTL,
                exclusive: false,
                waits: false,
                idempotency: None,
            };
            backend
                .take_turn(&thread.id(), Access::All, &later)
                .await
                .unwrap();
            let assert_lost = |error: ApiError| {
                assert!(
                    is_refused_by(&error, |refusal| *refusal == Refusal::TurnLost),
                    "{error}"
                );
            };
            assert_lost(thread.keys().set("a", "1").await.unwrap_err());
            assert_lost(thread.tasks().write(&[]).await.unwrap_err());
            assert_lost(thread.destroy().await.unwrap_err());
            thread.state().set("k", 2)?;
            drop(turn);
            Ok::<_, ApiError>("done")
        }
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), 409);
    let id = id_of(&response).unwrap();
    assert_eq!(bench.state(&id).await, r#"{"k":1}"#);
}

async fn a_turn_with_an_invalid_ttl_is_refused(room: Room) {
    let bench = Bench::with_turns(room);
    let handler = async |thread: Thread| {
        for ttl in [Duration::ZERO, Duration::from_secs(601)] {
            let refused = thread.turn(ttl).await.unwrap_err();
            assert_eq!(refused.code(), "invalid_parameter");
        }
        "done"
    };

    assert_eq!(bench.call(handler).await.status(), 200);
}

over_every_store!(
    dropping_a_turn_ends_it,
    a_turn_renews_itself_while_it_is_held,
    writes_of_a_lost_turn_are_refused,
    a_turn_with_an_invalid_ttl_is_refused,
);
