use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Refusal, ResponseLimits, Status};
use threadkeep_responses::{
    MissingThread, NewResponse, ResponseContext, ResponseError, ResponseRequest, ResponseService,
    UpstreamError,
};
use threadkeep_service::{Creation, SessionMetadata, SessionService};
use threadkeep_store::{HistoryFrom, Reader};
use tokio::time::timeout;

use super::model_responses::{Counting, DyingResponses, LEASE, PATIENCE, response, responses};
use super::room::Room;

fn response_in(
    responses: &ResponseService,
    scope: &ScopeId,
    context: ResponseContext,
) -> NewResponse {
    let new = response(responses, &threadkeep::ThreadId::random(), "Count.");
    let id = responses.response_id(scope, rand::random());
    let mut request = ResponseRequest {
        context,
        ..(*new.request).clone()
    };
    for (number, item) in request.input.iter_mut().enumerate() {
        item.id = format!("{id}-{number}");
    }
    NewResponse {
        id,
        scope: scope.clone(),
        missing: MissingThread::Refuse,
        request: Arc::new(request),
        ..new
    }
}

async fn session(room: &Room) -> ScopeId {
    let (_, scopes) = room.services();
    let sessions = SessionService::new(scopes, Arc::clone(&room.backend) as _, room.clock.clone());
    let making = Creation::new();
    let made = sessions.create(&making, None, SessionMetadata::default());
    sessions.scope(made.await.unwrap().id)
}

async fn roles(room: &Room, scope: &ScopeId) -> Vec<String> {
    let from = HistoryFrom::After(0);
    let page = room.backend.read_history(scope, Reader::ALL, from, 1_000);
    let items = page.await.unwrap().map_or(Vec::new(), |page| page.items);
    let role = |value: &str| {
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        value["role"].as_str().unwrap().to_owned()
    };
    items.iter().map(|item| role(item.value.as_str())).collect()
}

fn results(output: &[threadkeep_domain::Json]) -> Vec<String> {
    let items = output.iter().map(|item| {
        let item: serde_json::Value = serde_json::from_str(item.as_str()).unwrap();
        item["output"].as_str().map(Into::into)
    });
    items.flatten().collect()
}

async fn each_call_runs_once_in_each_context_wherever_the_driver_dies(room: Room) {
    for context in [
        ResponseContext::Session,
        ResponseContext::State,
        ResponseContext::Nothing,
    ] {
        // the store calls: start, three answers, two tool calls, end
        for (dies_at, is_done) in (0..7).flat_map(|at| [(at, false), (at, true)]) {
            let model = Arc::new(Counting {
                steps: 2,
                ..Counting::default()
            });
            let (dying, first) = DyingResponses::driver(&room, &model, dies_at, is_done);
            let second = responses(&room, &model, ResponseLimits::DEFAULT);
            let scope = session(&room).await;
            let new = response_in(&second, &scope, context);

            let copy = new.clone();
            let stuck = tokio::spawn(async move { first.run(copy).await });
            timeout(PATIENCE, dying.died.notified()).await.unwrap();
            room.advance(LEASE);
            let ended = timeout(PATIENCE, second.run(new)).await.unwrap().unwrap();
            stuck.abort();

            let case = format!("{context:?}, {dies_at}, {is_done}");
            let outcome = &ended.outcome;
            assert_eq!(outcome.status, Status::Completed, "{case}");
            let counted = [1, 2].map(|value| format!(r#"{{"ok":true,"value":{value}}}"#));
            assert_eq!(results(&outcome.output), counted, "{case}");
            let stored = room.scope(&scope.to_string()).value("a/n").await;
            let is_stored = context != ResponseContext::Nothing;
            assert_eq!(stored.as_deref(), is_stored.then_some("2"), "{case}");
            let expected = [
                "user",
                "assistant",
                "tool",
                "assistant",
                "tool",
                "assistant",
            ];
            let expected = match context {
                ResponseContext::Session => &expected[..],
                _ => &[],
            };
            assert_eq!(roles(&room, &scope).await, expected, "{case}");
        }
    }
}

async fn responses_of_a_session_run_one_at_a_time(room: Room) {
    let model = Arc::new(Counting {
        steps: 1,
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let scope = session(&room).await;

    let running = [&one, &other].repeat(4).into_iter().map(|responses| {
        let mut new = response_in(responses, &scope, ResponseContext::Session);
        new.wait = Duration::from_secs(30);
        let responses = responses.clone();
        tokio::spawn(async move { responses.run(new).await.unwrap() })
    });
    let running: Vec<_> = running.collect();
    for response in running {
        let ended = timeout(PATIENCE, response).await.unwrap().unwrap();
        assert_eq!(ended.outcome.status, Status::Completed);
    }

    let once = ["user", "assistant", "tool", "assistant"];
    assert_eq!(roles(&room, &scope).await, once.repeat(8));
    let stored = room.scope(&scope.to_string()).value("a/n").await;
    assert_eq!(stored.as_deref(), Some("8"));
}

async fn a_session_without_a_record_has_no_responses(room: Room) {
    let model = Arc::new(Counting::default());
    let responses = responses(&room, &model, ResponseLimits::DEFAULT);
    let scope = room.session();

    let run = responses.run(response_in(&responses, &scope.id, ResponseContext::Session));
    let error = run.await.unwrap_err();

    let ResponseError::Service(error) = &*error else {
        panic!("{error:?}");
    };
    let refused = matches!(
        error,
        threadkeep_service::ServiceError::Refused(Refusal::ScopeNotFound)
    );
    assert!(refused, "{error:?}");
}

async fn a_failed_response_keeps_the_items_of_completed_tool_calls(room: Room) {
    let model = Arc::new(Counting {
        steps: 2,
        fails_at: Some((1, UpstreamError::Failed)),
        has_failed: AtomicBool::new(false),
        ..Counting::default()
    });
    let responses = responses(&room, &model, ResponseLimits::DEFAULT);
    let scope = session(&room).await;
    let given_up = response_in(&responses, &scope, ResponseContext::Session);

    responses.run(given_up.clone()).await.unwrap_err();
    let next = response_in(&responses, &scope, ResponseContext::Session);
    responses.run(next).await.unwrap();
    let again = responses.run(given_up).await.unwrap();

    assert!(matches!(again.outcome.status, Status::Failed(_)));
    let roles_seen = roles(&room, &scope).await;
    assert_eq!(roles_seen[..4], ["user", "assistant", "tool", "user"]);
    assert_eq!(roles_seen.len(), 3 + 6);
}

super::over_every_store_and_confirmed!(
    each_call_runs_once_in_each_context_wherever_the_driver_dies,
    responses_of_a_session_run_one_at_a_time,
    a_session_without_a_record_has_no_responses,
    a_failed_response_keeps_the_items_of_completed_tool_calls,
);
