use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use threadkeep::{Session, Thread};
use threadkeep_domain::ThreadId;
use threadkeep_domain::scope::{NewTask, ScopeId, TaskChange, TaskRef, TaskStatus};
use threadkeep_service::ServiceError;
use threadkeep_store::HistoryFrom;
use threadkeep_web::ApiError;

use super::{Bench, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;

type Answer = Result<HttpResponse, ApiError>;

fn done() -> Answer {
    Ok(HttpResponse::Ok().finish())
}

fn shared() -> ScopeId {
    "session:shared".parse().unwrap()
}

fn task(content: &str) -> NewTask {
    NewTask {
        id: None,
        content: content.into(),
        status: TaskStatus::Pending,
        active_form: None,
    }
}

async fn keys_are_written_immediately_and_kept_when_the_request_fails(room: Room) {
    let bench = Bench::with_scopes(room);
    let write = async |thread: Thread| {
        let keys = thread.keys();
        keys.set("user/name", "Ada").await?;
        assert_eq!(keys.get("user/name").await?.as_deref(), Some("Ada"));
        assert!(keys.set_if_absent("b", "1").await?);
        assert!(!keys.set_if_absent("b", "2").await?);
        assert_eq!(keys.increment("b", 41).await?, 42);
        keys.set_with_ttl("short", "x", Duration::from_secs(60))
            .await?;
        assert!(keys.delete("short").await?);
        assert!(!keys.delete("short").await?);
        Err::<HttpResponse, _>(ApiError::InvalidParameter("after all".into()))
    };

    let failed = bench.call(write).await;
    let id = id_of(&failed).expect("the thread exists, so its id is sent");
    let read = async |thread: Thread| {
        let keys = thread.keys();
        let values = keys.get_many(&["b", "user/name", "none"]).await?;
        assert_eq!(values, [Some("42".into()), Some("Ada".into()), None]);
        assert_eq!(keys.list("").await?, ["b", "user/name"]);
        assert_eq!(keys.list("user/").await?, ["user/name"]);
        done()
    };

    assert_eq!(failed.status(), StatusCode::BAD_REQUEST);
    assert_eq!(bench.call_as(&id, read).await.status(), StatusCode::OK);
    assert_eq!(bench.state(&id).await, "{}");
}

async fn a_version_guards_a_write(room: Room) {
    let bench = Bench::with_scopes(room);
    let handler = async |thread: Thread| {
        let keys = thread.keys();
        assert_eq!(keys.version().await?, 0);
        keys.clone().if_version(0).set("a", "1").await?;
        let late = keys.clone().if_version(0).set("a", "2").await;
        assert!(matches!(
            late,
            Err(ApiError::Service(ServiceError::Refused(_)))
        ));
        let late = thread.tasks().if_version(7).write(&[]).await;
        assert!(matches!(
            late,
            Err(ApiError::Service(ServiceError::Refused(_)))
        ));
        let version = keys.version().await?;
        keys.if_version(version).set("a", "3").await?;
        done()
    };

    assert_eq!(bench.call(handler).await.status(), StatusCode::OK);
}

async fn tasks_and_history_belong_to_the_thread(room: Room) {
    let bench = Bench::with_scopes(room);
    let handler = async |thread: Thread| {
        let (tasks, history) = (thread.tasks(), thread.history());
        tasks.write(&[task("a"), task("b")]).await?;
        let change = TaskChange {
            status: Some(TaskStatus::Completed),
            ..TaskChange::default()
        };
        tasks.update(&TaskRef::Index(0), &change).await?;
        let dropped = tasks.write_keeping_unfinished(&[task("c")]).await;
        assert!(matches!(
            dropped,
            Err(ApiError::Service(ServiceError::Tasks(_)))
        ));
        let list = tasks.list().await?;
        assert_eq!((list[0].status, list.len()), (TaskStatus::Completed, 2));

        assert_eq!(history.append("m1", "hello").await?.seq, 1);
        assert!(history.append("m1", "hello").await?.repeated);
        assert!(history.append("m1", "other").await.is_err());
        assert_eq!(history.append("m2", 7).await?.seq, 2);
        assert_eq!(history.append_all(&[]).await?, []);
        let page = history.read(HistoryFrom::Before(u64::MAX), 1).await?;
        assert_eq!(page.items[0].value.as_str(), "7");
        assert_eq!(page.summary.next_seq, 3);
        history.append("m3", 8).await?;
        let taken = history.take(1).await?;
        assert_eq!((taken[0].seq, taken[0].value.as_str()), (3, "8"));
        assert!(history.remove("m2").await?);
        assert!(!history.remove("m2").await?);
        assert!(history.clear().await?);
        assert!(history.take(100).await?.is_empty());
        for count in [0, 101] {
            let refused = history.take(count).await;
            assert!(matches!(refused, Err(ApiError::InvalidParameter(_))));
        }

        thread.destroy().await?;
        assert!(tasks.list().await?.is_empty());
        assert!(
            history
                .read(HistoryFrom::After(0), 9)
                .await?
                .items
                .is_empty()
        );
        done()
    };

    let response = bench.call_as(&ThreadId::random(), handler).await;
    assert_eq!(response.status(), StatusCode::OK);
}

async fn scopes_are_shared_by_requests_and_outlive_them(room: Room) {
    let bench = Bench::with_scopes(room);
    let outside = bench.threads.scope(shared());
    outside.keys().set("free text", "1").await.unwrap();
    let handler = async |session: Session| {
        let scope = session.scope(shared());
        assert_eq!(scope.keys().increment("free text", 1).await?, 2);
        scope.tasks().write(&[task("a")]).await?;
        let late = scope.clone();
        session.wait_until(async move {
            late.history().append("late", true).await.unwrap();
        });
        done()
    };

    let response = bench.call(handler).await;
    assert_eq!(response.status(), StatusCode::OK);
    bench.threads.shutdown(Duration::from_secs(10)).await;

    assert_eq!(
        outside.keys().get("free text").await.unwrap().as_deref(),
        Some("2")
    );
    let page = outside
        .history()
        .read(HistoryFrom::After(0), 9)
        .await
        .unwrap();
    assert_eq!(page.items[0].id.as_str(), "late");
    assert!(outside.clear(true).await.is_err());
    outside.clear(false).await.unwrap();
    assert!(outside.keys().list("").await.unwrap().is_empty());
    assert!(outside.end().await.unwrap());
    assert!(!outside.end().await.unwrap());
}

async fn invalid_keys_and_values_are_refused(room: Room) {
    let bench = Bench::with_scopes(room);
    let handler = async |thread: Thread| {
        let keys = thread.keys();
        for key in ["", "free text", &"k".repeat(129)] {
            assert!(matches!(
                keys.get(key).await,
                Err(ApiError::ScopePart { .. })
            ));
        }
        let long = keys.set("a", &"x".repeat(32_769)).await;
        assert!(matches!(long, Err(ApiError::ScopePart { .. })));
        let short = keys.set_with_ttl("a", "", Duration::from_millis(999)).await;
        assert!(matches!(short, Err(ApiError::InvalidParameter(_))));
        let spaced = thread.history().append("a b", 1).await;
        assert!(matches!(spaced, Err(ApiError::ScopePart { .. })));
        let spaced = thread.history().remove("a b").await;
        assert!(matches!(spaced, Err(ApiError::ScopePart { .. })));
        assert_eq!(keys.version().await?, 0);
        done()
    };

    assert_eq!(bench.call(handler).await.status(), StatusCode::OK);
}

async fn scope_calls_fail_without_scopes(room: Room) {
    let bench = Bench::new(room);
    let handler = async |thread: Thread| {
        let missing = thread.keys().get("a").await;
        assert!(matches!(missing, Err(ApiError::Internal { .. })));
        done()
    };

    assert_eq!(bench.call(handler).await.status(), StatusCode::OK);
}

over_every_store!(
    keys_are_written_immediately_and_kept_when_the_request_fails,
    a_version_guards_a_write,
    tasks_and_history_belong_to_the_thread,
    scopes_are_shared_by_requests_and_outlive_them,
    invalid_keys_and_values_are_refused,
    scope_calls_fail_without_scopes,
);
