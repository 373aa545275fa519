//! Tests the guarantees of the library for actix-web apps, and counts the store calls that the library makes.

mod after;
mod answers;
mod branches;
mod builder;
mod callbacks;
mod commands;
mod cost;
mod counting;
mod effects;
mod forks;
mod keeping;
mod life;
mod owners;
mod scopes;
mod subscribers;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BoxBody, EitherBody};
use actix_web::dev::ServiceResponse;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, FromRequest, Handler, Responder, web};
use threadkeep::Threads;
use threadkeep_domain::{KeyRing, SigningKey, ThreadId, ThreadPolicy};
use threadkeep_identity::{CookieSettings, Identity, THREAD_ID};
use threadkeep_service::ThreadService;
use threadkeep_store::Store;

use crate::conformance::room::Room;
use counting::{Calls, CountingStore};

type Response = ServiceResponse<EitherBody<BoxBody>>;

struct Bench {
    room: Room,
    calls: Arc<Calls>,
    identity: Identity,
    threads: Threads,
}

impl Bench {
    fn new(room: Room) -> Self {
        Self::with(room, |identity| identity)
    }

    fn with(room: Room, adjust: impl FnOnce(Identity) -> Identity) -> Self {
        let store = CountingStore::around(Arc::clone(&room.store));
        let ring = KeyRing::new(vec![SigningKey::new("main", b"a secret of the tests")]).unwrap();
        let identity = adjust(Identity::new(ring, CookieSettings::default()));
        Self {
            calls: Arc::clone(&store.calls),
            threads: Threads::new(service(Arc::new(store)), identity.clone()),
            identity,
            room,
        }
    }

    fn with_scopes(room: Room) -> Self {
        let (_, scopes) = room.services();
        let bench = Self::new(room);
        Self {
            threads: bench.threads.clone().with_scopes(scopes),
            ..bench
        }
    }

    async fn call<F, Args>(&self, handler: F) -> Response
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.send(handler, TestRequest::post()).await
    }

    async fn call_as<F, Args>(&self, id: &ThreadId, handler: F) -> Response
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let signed = self.identity.signed_id(id);
        let request = TestRequest::post().insert_header((THREAD_ID, signed));
        self.send(handler, request).await
    }

    async fn send<F, Args>(&self, handler: F, request: TestRequest) -> Response
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        call_app(&self.threads, request, handler).await
    }

    /// Returns the stored state, without counting the read.
    async fn state(&self, id: &ThreadId) -> String {
        let found = service(Arc::clone(&self.room.store)).get_state(id).await;
        String::from_utf8(found.unwrap().content.to_vec()).unwrap()
    }
}

async fn call_app<F, Args>(threads: &Threads, request: TestRequest, handler: F) -> Response
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let app = App::new()
        .wrap(threads.clone())
        .default_service(web::to(handler));
    call_service(&init_service(app).await, request.to_request()).await
}

fn service(store: Arc<dyn Store>) -> ThreadService {
    ThreadService::new(store, ThreadPolicy::THREAD, Duration::from_secs(2))
}

fn id_of(response: &Response) -> Option<ThreadId> {
    let signed = response.headers().get(THREAD_ID)?.to_str().unwrap();
    Some(signed.split_once(';').unwrap().0.parse().unwrap())
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    Some(response.headers().get(name)?.to_str().unwrap())
}
