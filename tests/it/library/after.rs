use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::web::Bytes;
use actix_web::{App, HttpResponse, HttpServer, web};
use futures_util::{FutureExt, stream};
use threadkeep::{RequestState, Session, Thread};
use threadkeep_domain::ThreadId;
use threadkeep_identity::THREAD_ID;
use threadkeep_web::ApiError;
use tokio::sync::{Notify, oneshot};

use super::{Bench, header};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;
use crate::support::client::Client;

const LIMIT: Duration = Duration::from_secs(30);

async fn a_streaming_handler_flushes_what_it_writes(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let handler = async |thread: Thread| {
        thread.state().push("list", "before").unwrap();
        let body = stream::once(async move {
            thread.state().push("list", "within")?;
            let version = thread.flush().await?.unwrap().version;
            assert!(thread.flush().await?.is_none());
            Ok::<_, ApiError>(Bytes::from(version.to_string()))
        });
        HttpResponse::Ok().streaming(body)
    };

    let response = bench.call_as(&id, handler).await;
    assert_eq!(bench.state(&id).await, r#"{"list":["before"]}"#);
    let body = read_body(response).await;

    assert_eq!(body, "2");
    assert_eq!(bench.state(&id).await, r#"{"list":["before","within"]}"#);
}

async fn work_after_the_response_is_awaited_at_shutdown(room: Room) {
    let bench = Bench::new(room);
    let threads = bench.threads.clone();
    let go = Arc::new(Notify::new());
    let waiting = web::Data::from(Arc::clone(&go));
    let server = HttpServer::new(move || {
        App::new()
            .wrap(threads.clone())
            .app_data(waiting.clone())
            .default_service(web::to(defer_work))
    });
    let server = server.workers(1).disable_signals();
    let server = server.bind(("127.0.0.1", 0)).unwrap();
    let client = Client::new(server.addrs()[0]);
    let server = server.run();
    let handle = server.handle();
    let running = tokio::spawn(server);
    let answer = client.get("/").ok().await;
    let signed = answer.header(THREAD_ID.as_str()).unwrap();
    let id: ThreadId = signed.split_once(';').unwrap().0.parse().unwrap();

    handle.stop(true).await;
    running.await.unwrap().unwrap();
    assert_eq!(bench.threads.shutdown(Duration::from_millis(1)).await, 1);
    go.notify_one();
    assert_eq!(bench.threads.shutdown(LIMIT).await, 0);

    assert_eq!(bench.state(&id).await, r#"{"after":true,"before":true}"#);
}

/// Queues work that resumes only after the worker that served the request has ended.
async fn defer_work(thread: Thread, session: Session, go: web::Data<Notify>) -> HttpResponse {
    thread.state().set("before", true).unwrap();
    session.wait_until(async move {
        go.notified().await;
        thread.state().set("after", true).unwrap();
        thread.flush().await.unwrap();
    });
    HttpResponse::Ok().finish()
}

async fn completion_reports_the_status_that_the_client_receives(room: Room) {
    let bench = Bench::new(room);
    let (sender, receiver) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let handler = move |thread: Thread, session: Session| {
        let sender = sender.lock().unwrap().take().unwrap();
        async move {
            session.on_completed(move |completed| sender.send(completed).unwrap());
            thread.state().push("list", 1).unwrap();
            HttpResponse::Ok().finish()
        }
    };
    bench.calls.set_down(true);

    let response = bench.call(handler).await;

    let completed = receiver.await.unwrap();
    assert_eq!(completed.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        Some(completed.session.as_str()),
        header(&response, "x-session-id")
    );
    assert!(completed.duration < LIMIT);
}

async fn an_abandoned_request_writes_nothing_but_runs_its_deferred_work(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let hang = async |thread: Thread, session: Session| {
        thread.state().set("given_up", true).unwrap();
        session.on_completed(|_| panic!("there is no response"));
        session.wait_until(async move {
            thread.state().set("late", true).unwrap();
            thread.flush().await.unwrap();
        });
        std::future::pending::<HttpResponse>().await
    };

    assert!(bench.call_as(&id, hang).now_or_never().is_none());
    assert_eq!(bench.threads.shutdown(LIMIT).await, 0);

    assert_eq!(bench.state(&id).await, r#"{"late":true}"#);
}

async fn a_flush_without_an_answer_fails_the_request(room: Room) {
    let bench = Bench::new(room);
    let calls = Arc::clone(&bench.calls);
    let handler = move |thread: Thread| {
        let calls = Arc::clone(&calls);
        async move {
            thread.state().increment("n", 1).unwrap();
            calls.set_drops_answers(true);
            let flush = tokio::time::timeout(Duration::from_millis(50), thread.flush());
            assert!(flush.await.is_err());
            calls.set_drops_answers(false);
            HttpResponse::Ok().finish()
        }
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(bench.calls.take(), (0, 1));
}

async fn reads_omit_the_writes_of_a_failed_flush(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let handler = async |thread: Thread| {
        let state = thread.state();
        assert_eq!(state.size().await?, 0);
        state.set("large", "x".repeat(1_048_576))?;
        assert!(state.has("large").await?);
        assert!(thread.flush().await.is_err());
        assert!(!state.has("large").await?);
        state.set("small", 1)?;
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };

    let response = bench.call_as(&id, handler).await;

    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(bench.state(&id).await, r#"{"small":1}"#);
}

over_every_store!(
    a_streaming_handler_flushes_what_it_writes,
    work_after_the_response_is_awaited_at_shutdown,
    completion_reports_the_status_that_the_client_receives,
    an_abandoned_request_writes_nothing_but_runs_its_deferred_work,
    a_flush_without_an_answer_fails_the_request,
    reads_omit_the_writes_of_a_failed_flush,
);

#[tokio::test]
async fn values_of_a_request_are_keyed_by_type() {
    let bench = Bench::new(crate::conformance::room::memory());
    let handler = async |values: RequestState| {
        assert!(values.get::<u8>().is_none());
        assert!(values.insert(1_u8).is_none());
        assert_eq!(values.insert(2_u8).as_deref(), Some(&1));
        values.insert("text");
        assert_eq!(values.get::<u8>().as_deref(), Some(&2));
        assert_eq!(values.remove::<&str>().as_deref(), Some(&"text"));
        assert!(values.get::<&str>().is_none());
        HttpResponse::Ok().finish()
    };

    assert_eq!(bench.call(handler).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn extracting_a_thread_fails_without_the_middleware() {
    let handler = async |_: Thread| HttpResponse::Ok().finish();
    let app = init_service(App::new().default_service(web::to(handler))).await;

    let response = call_service(&app, TestRequest::get().to_request()).await;

    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn unflushed_writes_are_logged_as_lost() {
    let bench = Bench::new(crate::conformance::room::memory());
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer({
        let log = log.clone();
        move || log.clone()
    });
    let held_thread = Arc::new(Mutex::new(None));
    let handler = {
        let held_thread = Arc::clone(&held_thread);
        move |thread: Thread| {
            *held_thread.lock().unwrap() = Some(thread);
            std::future::ready(HttpResponse::Ok().finish())
        }
    };
    let response = bench.call(handler).await;
    let thread = held_thread.lock().unwrap().take().unwrap();
    drop(response);

    tracing::subscriber::with_default(subscriber.finish(), || {
        thread.state().set("secret", 1).unwrap();
        drop(thread.clone());
        assert_eq!(log.text(), "");
        drop(thread);
    });

    let text = log.text();
    assert!(text.contains("ERROR") && text.contains("lost"), "{text}");
    assert!(!text.contains("secret"));
}

#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
