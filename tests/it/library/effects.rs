use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use threadkeep::{ApiError, Attempt, EffectError, Thread, Turn};

use super::{Bench, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;

const TTL: Duration = Duration::from_secs(30);

/// A system that a tool calls.
#[derive(Debug, Clone, Default)]
struct Mailer {
    sent: Arc<AtomicU64>,
}

impl Mailer {
    fn send(&self, _: &Attempt) -> u64 {
        self.sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

async fn send(turn: &Turn, mailer: &Mailer) -> Result<u64, EffectError> {
    let call = turn.effect("call_1", "send_mail", &json!({"to": "ada"}));
    call.run(async |attempt| Ok(mailer.send(&attempt))).await
}

/// Begins the call, and fails before the tool has an outcome.
async fn die(turn: &Turn) -> Attempt {
    let mut begun = None;
    let call = turn.effect("call_1", "send_mail", &json!({"to": "ada"}));
    let died = call.run::<u64>(async |attempt| {
        begun = Some(attempt);
        Err(EffectError::Running)
    });
    assert!(matches!(died.await, Err(EffectError::Running)));
    begun.unwrap()
}

async fn a_tool_runs_once_and_later_turns_get_its_result(room: Room) {
    let (bench, mailer) = (Bench::with_turns(room), Mailer::default());
    let handler = |mailer: Mailer| {
        move |thread: Thread| {
            let mailer = mailer.clone();
            async move {
                let turn = thread.turn(TTL).await?;
                assert_eq!(send(&turn, &mailer).await.unwrap(), 1);
                assert_eq!(send(&turn, &mailer).await.unwrap(), 1);
                turn.end().await?;
                Ok::<_, ApiError>("done")
            }
        }
    };

    let first = bench.call(handler(mailer.clone())).await;
    let id = id_of(&first).unwrap();
    let second = bench.call_as(&id, handler(mailer.clone())).await;

    assert_eq!(
        (first.status(), second.status()),
        (200.try_into().unwrap(), 200.try_into().unwrap())
    );
    assert_eq!(mailer.sent(), 1);
}

async fn a_call_in_doubt_runs_again_only_on_request(room: Room) {
    let bench = Bench::with_turns(room);
    let handler = async |thread: Thread| {
        let mailer = Mailer::default();
        let turn = thread.turn(TTL).await?;
        assert_eq!(turn.number(), 1);
        let first = die(&turn).await;
        assert!(matches!(
            send(&turn, &mailer).await,
            Err(EffectError::Running)
        ));
        turn.end().await?;

        let turn = thread.turn(TTL).await?;
        let doubt = send(&turn, &mailer).await.unwrap_err();
        let EffectError::InDoubt { key, attempt } = doubt else {
            panic!("{doubt}");
        };
        assert_eq!((&key, attempt), (&first.key, 1));
        let call = turn.effect("call_1", "send_mail", &json!({"to": "ada"}));
        let retried = call.retry(attempt).run(async |attempt| {
            assert_eq!((&attempt.key, attempt.number), (&first.key, 2));
            Ok(mailer.send(&attempt))
        });
        assert_eq!(retried.await.unwrap(), 1);
        turn.end().await?;
        Ok::<_, ApiError>("done")
    };

    assert_eq!(bench.call(handler).await.status(), 200);
}

async fn the_result_of_a_call_in_doubt_can_be_recorded(room: Room) {
    let bench = Bench::with_turns(room);
    let handler = async |thread: Thread| {
        let mailer = Mailer::default();
        let turn = thread.turn(TTL).await?;
        die(&turn).await;
        turn.end().await?;

        let turn = thread.turn(TTL).await?;
        turn.settle("call_1", &7).await?;
        assert_eq!(send(&turn, &mailer).await.unwrap(), 7);
        assert_eq!(mailer.sent(), 0);
        turn.end().await?;
        Ok::<_, ApiError>("done")
    };

    assert_eq!(bench.call(handler).await.status(), 200);
}

async fn the_error_of_a_tool_is_recorded(room: Room) {
    let bench = Bench::with_turns(room);
    let handler = async |thread: Thread| {
        let mailer = Mailer::default();
        let turn = thread.turn(TTL).await?;
        let call = turn.effect("call_1", "send_mail", &json!({"to": "ada"}));
        let failed = call.run::<u64>(async |_| Err(EffectError::failed("no such address")));
        for failed in [failed.await, send(&turn, &mailer).await] {
            let Err(EffectError::Failed { error, attempt }) = failed else {
                panic!("{failed:?}");
            };
            assert_eq!((error, attempt), (json!("no such address"), 1));
        }
        let other = turn.effect("call_1", "send_mail", &json!({"to": "grace"}));
        let refused = other.run(async |attempt| Ok(mailer.send(&attempt))).await;
        assert!(matches!(refused, Err(EffectError::Api(error)) if error.code() == "effect_reused"));
        assert_eq!(mailer.sent(), 0);
        turn.end().await?;
        Ok::<_, ApiError>("done")
    };

    assert_eq!(bench.call(handler).await.status(), 200);
}

over_every_store!(
    a_tool_runs_once_and_later_turns_get_its_result,
    a_call_in_doubt_runs_again_only_on_request,
    the_result_of_a_call_in_doubt_can_be_recorded,
    the_error_of_a_tool_is_recorded,
);
