use actix_web::http::StatusCode;
use actix_web::http::header::{COOKIE, SET_COOKIE};
use actix_web::test::{TestRequest, read_body_json};
use actix_web::{HttpResponse, error};
use serde_json::{Value, json};
use threadkeep::{Session, Thread};
use threadkeep_domain::ThreadId;
use threadkeep_identity::THREAD_ID;
use threadkeep_web::ApiError;

use super::{Bench, Response, header, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;

async fn push(thread: Thread) -> Result<HttpResponse, ApiError> {
    thread.state().push("list", 1)?;
    Ok(HttpResponse::Created().body("done"))
}

async fn problem(response: Response) -> Value {
    assert_eq!(
        header(&response, "content-type"),
        Some("application/problem+json")
    );
    let session = header(&response, "x-session-id").unwrap().to_owned();
    let problem: Value = read_body_json(response).await;
    assert_eq!(problem["request_id"], session);
    problem
}

fn sends_no_id(response: &Response) -> bool {
    id_of(response).is_none() && !response.headers().contains_key(SET_COOKIE)
}

async fn a_header_that_does_not_verify_is_refused_without_a_store_call(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let signed = bench.identity.signed_id(&id).to_str().unwrap().to_owned();

    for bad in ["", id.as_str(), &signed[..signed.len() - 2], "x;y"] {
        let request = TestRequest::post().insert_header((THREAD_ID, bad));
        let response = bench.send(push, request).await;

        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{bad}");
        assert!(sends_no_id(&response));
        assert_eq!(problem(response).await["code"], "invalid_thread_signature");
    }
    assert_eq!(bench.calls.take(), (0, 0));
}

async fn a_cookie_that_does_not_verify_gets_a_fresh_thread(room: Room) {
    let bench = Bench::new(room);
    let old = ThreadId::random();
    let request = TestRequest::post().insert_header((COOKIE, format!("atid={old}.bm90IGl0")));

    let response = bench.send(push, request).await;

    assert_eq!(response.status(), StatusCode::CREATED);
    let fresh = id_of(&response).unwrap();
    assert_ne!(fresh, old);
    assert_eq!(bench.state(&fresh).await, r#"{"list":[1]}"#);
}

async fn an_id_is_accepted_from_a_header_and_from_a_cookie(room: Room) {
    let bench = Bench::new(room);
    let first = bench.call(push).await;
    let signed = header(&first, "x-thread-id").unwrap();
    let cookie = header(&first, "set-cookie").unwrap();
    let pair = cookie.split(';').next().unwrap();

    let by_header = TestRequest::post().insert_header((THREAD_ID, signed));
    let by_header = bench.send(push, by_header).await;
    let by_cookie = TestRequest::post().insert_header((COOKIE, pair));
    let by_cookie = bench.send(push, by_cookie).await;
    let opened = TestRequest::get().insert_header((COOKIE, pair));
    let opened = opened.insert_header(("sec-fetch-mode", "navigate"));
    let opened = bench.send(push, opened).await;

    assert_eq!(header(&by_header, "x-thread-id"), Some(signed));
    assert_eq!(header(&by_cookie, "x-thread-id"), Some(signed));
    assert_eq!(header(&by_header, "set-cookie"), None);
    assert_eq!(header(&by_cookie, "set-cookie"), None);
    assert_eq!(header(&opened, "set-cookie"), Some(cookie));
    assert_eq!(header(&first, "cache-control"), Some("private, no-cache"));
    let state = bench.state(&id_of(&first).unwrap()).await;
    assert_eq!(state, r#"{"list":[1,1,1,1]}"#);
}

async fn each_request_has_a_new_session_and_returns_its_id(room: Room) {
    let bench = Bench::new(room);
    let handler = async |session: Session| {
        session.state().set("n", 1).unwrap();
        assert_eq!(session.state().get::<i64>("n").unwrap(), Some(1));
        session.id().to_string()
    };

    let first = bench.call(handler).await;
    let second = bench.call(handler).await;

    let returned = header(&first, "x-session-id").unwrap().to_owned();
    assert_ne!(Some(&*returned), header(&second, "x-session-id"));
    assert_eq!(actix_web::test::read_body(first).await, returned);
}

async fn a_refused_write_turns_a_success_into_a_problem(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    bench.call_as(&id, push).await;
    let too_large = async |thread: Thread| {
        thread.state().set("a", 1)?;
        thread.state().set("b", "x".repeat(1_048_576))?;
        Ok::<_, ApiError>(HttpResponse::Ok().body("done"))
    };
    let no_array = async |thread: Thread| {
        thread.state().set("a", 1)?;
        thread.state().push("a", 1)?;
        Ok::<_, ApiError>(HttpResponse::Ok().body("done"))
    };

    let response = bench.call_as(&id, too_large).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(id_of(&response), Some(id));
    let body = problem(response).await;
    assert_eq!(body["code"], "state_too_large");
    assert_eq!(body["size_bytes"], 12);
    let response = bench.call_as(&id, no_array).await;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let body = problem(response).await;
    assert_eq!(
        (&body["code"], &body["operation"]),
        (&json!("not_an_array"), &json!(1))
    );
    assert_eq!(bench.state(&id).await, r#"{"list":[1]}"#);
}

async fn a_read_reports_early_why_a_queued_write_would_be_refused(room: Room) {
    let bench = Bench::new(room);
    let handler = async |thread: Thread| {
        let state = thread.state();
        state.set("a", 1)?;
        assert_eq!(state.get("a").await?, Some(1));
        state.push("a", 1)?;
        state.get::<Value>("other").await?;
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert!(sends_no_id(&response));
    assert_eq!(problem(response).await["operation"], 1);
    assert_eq!(bench.calls.take(), (1, 0));
}

async fn an_unavailable_store_is_reported_and_no_new_id_is_sent(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let read = async |thread: Thread| {
        let size = thread.state().size().await?;
        Ok::<_, ApiError>(HttpResponse::Ok().json(size))
    };
    bench.calls.set_down(true);

    for response in [bench.call(push).await, bench.call(read).await] {
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(header(&response, "retry-after"), Some("1"));
        assert!(sends_no_id(&response));
        assert_eq!(problem(response).await["code"], "store_unavailable");
    }
    let existing = bench.call_as(&id, push).await;
    assert_eq!(id_of(&existing), Some(id));
}

async fn a_handler_that_fails_writes_nothing(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let by_error = async |thread: Thread| {
        thread.state().set("a", 1)?;
        Err::<&str, _>(error::ErrorBadRequest("not like this"))
    };
    let by_status = async |thread: Thread| {
        thread.state().set("a", 1).unwrap();
        HttpResponse::BadGateway().body("upstream")
    };

    let error = bench.call_as(&id, by_error).await;
    let status = bench.call_as(&id, by_status).await;

    assert_eq!(error.status(), StatusCode::BAD_REQUEST);
    assert_eq!(status.status(), StatusCode::BAD_GATEWAY);
    assert_eq!(actix_web::test::read_body(status).await, "upstream");
    assert_eq!(bench.calls.take(), (0, 0));
}

async fn a_4xx_response_without_an_error_keeps_its_writes(room: Room) {
    let bench = Bench::new(room);
    let handler = |status| {
        move |thread: Thread| async move {
            thread.state().increment("misses", 1).unwrap();
            HttpResponse::build(status).finish()
        }
    };

    let missed = bench.call(handler(StatusCode::NOT_FOUND)).await;
    let id = id_of(&missed).unwrap();
    let forbidden = bench.call_as(&id, handler(StatusCode::FORBIDDEN)).await;

    assert!(sends_no_id(&forbidden));
    assert_eq!(bench.state(&id).await, r#"{"misses":2}"#);
}

over_every_store!(
    a_header_that_does_not_verify_is_refused_without_a_store_call,
    a_cookie_that_does_not_verify_gets_a_fresh_thread,
    an_id_is_accepted_from_a_header_and_from_a_cookie,
    each_request_has_a_new_session_and_returns_its_id,
    a_refused_write_turns_a_success_into_a_problem,
    a_read_reports_early_why_a_queued_write_would_be_refused,
    an_unavailable_store_is_reported_and_no_new_id_is_sent,
    a_handler_that_fails_writes_nothing,
    a_4xx_response_without_an_error_keeps_its_writes,
);
