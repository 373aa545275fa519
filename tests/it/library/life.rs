use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::test::read_body_json;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Map, Value, json};
use threadkeep::Thread;
use threadkeep_domain::ThreadId;
use threadkeep_identity::{ProviderError, ThreadIdProvider, TrustedProxies};
use threadkeep_web::ApiError;
use tokio::sync::Barrier;

use super::{Bench, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;

async fn concurrent_pushes_are_both_kept(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let both = Arc::new(Barrier::new(2));
    let handler = |element: &'static str| {
        let both = Arc::clone(&both);
        move |thread: Thread| {
            let both = Arc::clone(&both);
            async move {
                let before = thread.state().get::<Vec<String>>("list").await?;
                assert_eq!(before, None);
                both.wait().await;
                thread.state().push("list", element)?;
                Ok::<_, ApiError>(HttpResponse::Ok().finish())
            }
        }
    };

    let one = bench.call_as(&id, handler("one"));
    let other = bench.call_as(&id, handler("other"));
    let (one, other) = futures_util::future::join(one, other).await;

    assert_eq!(
        (one.status(), other.status()),
        (StatusCode::OK, StatusCode::OK)
    );
    let state = bench.state(&id).await;
    let order = [r#"{"list":["one","other"]}"#, r#"{"list":["other","one"]}"#];
    assert!(order.contains(&state.as_str()), "{state}");
}

async fn a_destroyed_thread_is_followed_by_a_fresh_one(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let make = async |thread: Thread| {
        thread.state().set("a", 1)?;
        thread.set_metadata(json!({"title": "t"}))?;
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };
    let destroy = async |thread: Thread| {
        thread.state().set("dropped", 1)?;
        let old = thread.id();
        thread.destroy().await?;
        assert_ne!(thread.id(), old);
        assert!(thread.empty().await?);
        thread.state().set("first", true)?;
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };
    bench.call_as(&id, make).await;

    let response = bench.call_as(&id, destroy).await;
    let late = bench.call_as(&id, make).await;

    let fresh = id_of(&response).unwrap();
    assert_ne!(fresh, id);
    assert_eq!(bench.state(&fresh).await, r#"{"first":true}"#);
    assert_eq!(late.status(), StatusCode::GONE);
    assert_eq!(id_of(&late), None);
    assert_eq!(bench.state(&id).await, "{}");
}

async fn a_failed_response_still_has_the_new_id_after_a_destroy(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let destroy_and_fail = async |thread: Thread| {
        thread.destroy().await.unwrap();
        HttpResponse::InternalServerError().finish()
    };

    let response = bench.call_as(&id, destroy_and_fail).await;

    assert_ne!(id_of(&response).unwrap(), id);
}

#[derive(Debug)]
struct FixedId(ThreadId);

impl ThreadIdProvider for FixedId {
    fn thread_id(&self, _: &HttpRequest, _: &TrustedProxies) -> Result<ThreadId, ProviderError> {
        Ok(self.0)
    }
}

async fn a_fixed_id_can_be_used_again_after_a_destroy(room: Room) {
    let id = ThreadId::random();
    let bench = Bench::with(room, |identity| identity.provide(Arc::new(FixedId(id))));
    let set = async |thread: Thread| {
        thread.state().set("k", 1)?;
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };
    bench.call(set).await;

    bench
        .call(async |thread: Thread| {
            thread.destroy().await?;
            Ok::<_, ApiError>(HttpResponse::Ok().finish())
        })
        .await;

    assert_eq!(bench.state(&id).await, "{}");
    assert_eq!(bench.call(set).await.status(), StatusCode::OK);
    assert_eq!(bench.state(&id).await, r#"{"k":1}"#);
}

async fn metadata_is_replaced_together_with_the_writes(room: Room) {
    let bench = Bench::new(room);
    let id = ThreadId::random();
    let set = async |thread: Thread| {
        assert!(thread.empty().await?);
        assert_eq!(thread.version(), Some(0));
        thread.set_metadata(json!({"a": 1}))?;
        thread.state().set("k", 1)?;
        let receipt = thread.flush().await?.unwrap();
        assert_eq!((receipt.version, receipt.size_bytes), (1, 7));
        thread.set_metadata(json!({"b": 2}))?;
        let queued: Map<String, Value> = thread.metadata().await?;
        assert!(!queued.contains_key("a"));
        assert!(thread.set_metadata([1]).is_err());
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };
    let get = async |thread: Thread| {
        let metadata: Value = thread.metadata().await?;
        assert_eq!(thread.version(), Some(2));
        assert!(!thread.empty().await?);
        Ok::<_, ApiError>(HttpResponse::Ok().json(metadata))
    };

    bench.call_as(&id, set).await;
    assert_eq!(bench.calls.take(), (2, 2));
    let response = bench.call_as(&id, get).await;

    assert_eq!(bench.calls.take(), (2, 0));
    assert_eq!(read_body_json::<Value, _>(response).await, json!({"b": 2}));
}

async fn values_keep_their_text_and_type_mismatches_are_errors(room: Room) {
    use serde_json::value::RawValue;
    let bench = Bench::new(room);
    let handler = async |thread: Thread| {
        let exact: Box<RawValue> = serde_json::from_str("[1.0,9007199254740993]").unwrap();
        thread.state().set("exact", &exact)?;
        let read: Option<Box<RawValue>> = thread.state().get("exact").await?;
        assert_eq!(read.unwrap().get(), exact.get());
        assert!(thread.state().get::<String>("exact").await.is_err());
        assert!(thread.state().set("", 1).is_err());
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), StatusCode::OK);
}

over_every_store!(
    concurrent_pushes_are_both_kept,
    a_destroyed_thread_is_followed_by_a_fresh_one,
    a_failed_response_still_has_the_new_id_after_a_destroy,
    a_fixed_id_can_be_used_again_after_a_destroy,
    metadata_is_replaced_together_with_the_writes,
    values_keep_their_text_and_type_mismatches_are_errors,
);
