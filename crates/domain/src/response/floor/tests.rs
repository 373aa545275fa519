use bytes::Bytes;

use super::super::held::tests::{begin, driven, end};
use super::*;
use crate::scope::ScopeId;
use crate::{TakeTurn, ThreadId};

const LIFE: Life = Life(7);

struct Thread {
    scope: ScopeId,
    turn: Option<Box<LastTurn>>,
}

impl Thread {
    fn new() -> Self {
        Self {
            scope: ScopeId::Thread(ThreadId::random()),
            turn: None,
        }
    }

    fn take(
        &mut self,
        id: u8,
        (token, floor): (TurnToken, Floor),
        last: Option<&HeldResponse>,
        now_ms: u64,
    ) -> Result<Option<Begun>, Refusal> {
        let request = Bytes::new();
        let begin = BeginResponse {
            request: Some(&request),
            ..begin(&self.scope, token, floor)
        };
        let floor = ThreadFloor {
            life: LIFE,
            turn: &mut self.turn,
            last,
            before: None,
        };
        floor.take(response(id), &begin, now_ms)
    }

    fn held(&self, token: TurnToken) -> HeldResponse {
        driven(&begin(&self.scope, token, Floor::Taken), 0)
    }
}

fn response(id: u8) -> ResponseId {
    ResponseId::in_bucket(0, [id; 16])
}

#[test]
fn a_clients_turn_blocks_a_response_unless_it_is_lent() {
    let (mut thread, client) = (Thread::new(), TurnToken::random());
    let take = TakeTurn {
        token: client,
        ttl: Duration::from_secs(5),
        exclusive: false,
        waits: false,
        idempotency: None,
    };
    crate::threads::turn::take_turn(&mut thread.turn, &take, 0).unwrap();

    let taken = thread.take(1, (TurnToken::random(), Floor::Taken), None, 1_000);
    let left = Duration::from_secs(4);
    assert_eq!(taken, Ok(Some(Begun::Locked { by: None, left })));
    let lost = Floor::Lent(TurnToken::random());
    let lent = thread.take(1, (TurnToken::random(), lost), None, 1_000);
    assert_eq!(lent, Err(Refusal::TurnLost));
    let lent = thread.take(1, (TurnToken::random(), Floor::Lent(client)), None, 1_000);
    assert_eq!(lent, Ok(None));
    assert_eq!(thread.turn.unwrap().response(), Some(response(1)));
}

#[test]
fn a_response_holds_the_floor_until_it_ends() {
    let (mut thread, token) = (Thread::new(), TurnToken::random());
    assert_eq!(thread.take(1, (token, Floor::Taken), None, 0), Ok(None));
    let mut first = thread.held(token);
    let second = (TurnToken::random(), Floor::Taken);

    let by = Some(response(1));
    let left = Duration::from_secs(9);
    assert_eq!(
        thread.take(2, second, Some(&first), 1_000),
        Ok(Some(Begun::Locked { by, left }))
    );
    let behind = Begun::Behind(response(1));
    assert_eq!(
        thread.take(2, second, Some(&first), 20_000),
        Ok(Some(behind))
    );

    let answer = Bytes::new();
    first.end(&end(&answer), true, Duration::ZERO, 2_000);
    assert_eq!(
        thread.take(2, second, Some(&first), 3_000),
        Ok(None),
        "the ended response gave up the floor"
    );
    assert_eq!(thread.turn.unwrap().token(), second.0);
}
