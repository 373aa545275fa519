use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    Creation, ScopeService, ServiceError, SessionMetadata, SessionService, StateHandleService,
    ThreadService, WriteOptions,
};
use threadkeep_domain::scope::{KeyRule, KvOperation, ScopeKey, ScopePolicies, ScopeValue};
use threadkeep_domain::{Fingerprint, Json, Refusal, ThreadPolicy};
use threadkeep_store::{Clock, Listing, Listings, StoreError};
use threadkeep_store_memory::MemoryStore;

struct Fixture {
    clock: Clock,
    listings: Arc<dyn Listings>,
    scopes: ScopeService,
    handles: StateHandleService,
    sessions: SessionService,
}

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn fixture() -> Fixture {
    let clock = Clock::system();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let listings: Arc<dyn Listings> = Arc::clone(&store) as _;
    let threads = ThreadService::new(Arc::clone(&store) as _, ThreadPolicy::THREAD, HOUR);
    let scopes = ScopeService::new(store, threads, ScopePolicies::DEFAULT, HOUR);
    Fixture {
        handles: StateHandleService::new(scopes.clone(), Arc::clone(&listings), clock.clone()),
        sessions: SessionService::new(scopes.clone(), Arc::clone(&listings), clock.clone()),
        clock,
        listings,
        scopes,
    }
}

impl Fixture {
    async fn listed(&self, name: &str) -> Vec<String> {
        let listing = Listing { name, owner: None };
        self.listings.list_page(&listing, 0, 100).await.unwrap()
    }

    async fn handle(&self, ttl: Option<Duration>) -> Uuid {
        let handle = self.handles.create(&Creation::new(), ttl).await;
        handle.unwrap().id
    }

    async fn session(&self, customer_id: Option<Uuid>) -> Uuid {
        let metadata = SessionMetadata::default();
        let session = self
            .sessions
            .create(&Creation::new(), customer_id, metadata)
            .await;
        session.unwrap().id
    }

    async fn write(&self, session: Uuid) {
        let set = KvOperation::Set {
            key: ScopeKey::new("k", KeyRule::Namespaced).unwrap(),
            value: ScopeValue::new("v").unwrap(),
            ttl: None,
            if_absent: false,
        };
        let scope = format!("session:{session}").parse().unwrap();
        let options = WriteOptions::default();
        self.scopes.write(&scope, &[set], options).await.unwrap();
    }
}

fn is_not_found<T>(result: &Result<T, ServiceError>) -> bool {
    matches!(result, Err(ServiceError::Refused(Refusal::ScopeNotFound)))
}

#[tokio::test]
async fn expired_handles_leave_the_list_when_others_are_created() {
    let fixture = fixture();
    for _ in 0..5 {
        fixture.handle(Some(HOUR)).await;
    }
    let unexpiring = fixture.handle(None).await;

    fixture.clock.advance(2 * HOUR);
    let new = fixture.handle(None).await;

    let remaining = [new.to_string(), unexpiring.to_string()];
    assert_eq!(fixture.listed("state-handles").await, remaining);
    let due = fixture.clock.now_ms() + 1_000;
    let due = fixture.listings.list_due("state-handles", due, 10).await;
    assert_eq!(due.unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn an_entry_without_a_scope_is_on_no_page() {
    let fixture = fixture();
    let made = fixture.handle(None).await;
    let listing = Listing {
        name: "state-handles",
        owner: None,
    };
    for member in [Uuid::nil().to_string(), "no uuid".into()] {
        let at_ms = fixture.clock.now_ms() + 1;
        let added = fixture.listings.list_add(&listing, &member, at_ms, at_ms);
        added.await.unwrap();
    }

    let page = fixture.handles.list(0, 1).await.unwrap();

    let ids: Vec<_> = page.items.iter().map(|handle| handle.id).collect();
    assert_eq!(ids, [made]);
    assert_eq!(page.next_offset, None);
    assert_eq!(fixture.listed("state-handles").await, [made.to_string()]);
}

#[tokio::test]
async fn a_used_session_stays_listed_and_an_expired_one_is_removed() {
    let fixture = fixture();
    let used = fixture.session(None).await;
    fixture.session(None).await;
    for _ in 0..3 {
        fixture.clock.advance(20 * DAY);
        fixture.sessions.get(used).await.unwrap();
    }

    let page = fixture.sessions.list(None, 0, 100).await.unwrap();

    let ids: Vec<_> = page.items.iter().map(|session| session.id).collect();
    assert_eq!(ids, [used]);
}

#[tokio::test]
async fn the_list_of_a_customer_contains_only_their_sessions() {
    let fixture = fixture();
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mine = fixture.session(Some(one)).await;
    fixture.session(Some(two)).await;
    fixture.session(None).await;

    let page = fixture.sessions.list(Some(one), 0, 100).await.unwrap();
    let all = fixture.sessions.list(None, 0, 100).await.unwrap();

    let ids: Vec<_> = page.items.iter().map(|session| session.id).collect();
    assert_eq!(ids, [mine]);
    assert_eq!(all.items.len(), 3);
}

#[tokio::test]
async fn a_scope_created_by_a_tool_is_not_a_session() {
    let fixture = fixture();
    let stray = Uuid::from_u128(7);
    let deleted = fixture.session(None).await;
    fixture.sessions.delete(deleted).await.unwrap();

    for id in [stray, deleted] {
        fixture.write(id).await;
        let value = Json::parse("{}").unwrap();
        let added = fixture
            .sessions
            .add_message(id, &Creation::new(), value)
            .await;
        assert!(is_not_found(&added));
        assert!(is_not_found(&fixture.sessions.get(id).await));
        assert!(is_not_found(&fixture.sessions.tool_scope(id).await));
        assert!(is_not_found(&fixture.sessions.delete(id).await));
    }
    let page = fixture.sessions.list(None, 0, 100).await.unwrap();
    assert!(page.items.is_empty());
}

#[tokio::test]
async fn a_repeated_request_recreates_an_expired_handle() {
    let fixture = fixture();
    let making = Creation::recognized([7; 16], Fingerprint::of(&[b"{}"]));
    let create = async || fixture.handles.create(&making, Some(HOUR)).await.unwrap();
    let first = create().await;

    let again = create().await;
    fixture.clock.advance(2 * HOUR);
    let recreated = create().await;

    assert_eq!(first, again);
    assert_eq!(recreated.id, first.id);
    assert!(recreated.created_ms > first.created_ms);
    assert_eq!(fixture.listed("state-handles").await.len(), 1);
}

/// Delegates to `listings`, except that one call never returns.
#[derive(Debug)]
struct Hanging {
    listings: Arc<dyn Listings>,
    add: bool,
}

#[async_trait]
impl Listings for Hanging {
    async fn list_add(
        &self,
        listing: &Listing<'_>,
        member: &str,
        at_ms: u64,
        look_ms: u64,
    ) -> Result<(), StoreError> {
        match self.add {
            true => pending().await,
            false => {
                let added = self.listings.list_add(listing, member, at_ms, look_ms);
                added.await
            }
        }
    }

    async fn list_page(
        &self,
        _: &Listing<'_>,
        _: u64,
        _: usize,
    ) -> Result<Vec<String>, StoreError> {
        pending().await
    }

    async fn list_remove(&self, _: &str, _: &[String]) -> Result<(), StoreError> {
        pending().await
    }

    async fn list_due(&self, _: &str, _: u64, _: usize) -> Result<Vec<String>, StoreError> {
        pending().await
    }

    async fn list_reschedule(&self, _: &str, _: &[(String, u64)]) -> Result<(), StoreError> {
        pending().await
    }
}

/// Returns services with a list store that hangs on each call until the timeout. `list_add` hangs only if `add` is set.
fn hanging(add: bool) -> (StateHandleService, SessionService) {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let clock = Clock::system();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let listings = Arc::clone(&store) as _;
    let listings: Arc<dyn Listings> = Arc::new(Hanging { listings, add });
    let threads = ThreadService::new(Arc::clone(&store) as _, ThreadPolicy::THREAD, TIMEOUT);
    let scopes = ScopeService::new(store, threads, ScopePolicies::DEFAULT, TIMEOUT);
    (
        StateHandleService::new(scopes.clone(), Arc::clone(&listings), clock.clone()),
        SessionService::new(scopes, listings, clock),
    )
}

#[tokio::test]
async fn several_store_calls_share_one_time_limit() {
    let is_late = |error: &ServiceError| matches!(error, ServiceError::Store(StoreError::Timeout(ms)) if *ms == 4_000);
    let (handles, sessions) = hanging(true);
    let making = Creation::new();

    let (handle, session, page, ended) = tokio::join!(
        handles.create(&making, None),
        sessions.create(&making, None, SessionMetadata::default()),
        handles.list(0, 10),
        handles.delete(making.id),
    );

    assert!(is_late(&handle.unwrap_err()));
    assert!(is_late(&session.unwrap_err()));
    assert!(is_late(&page.unwrap_err()));
    assert!(is_late(&ended.unwrap_err()));
}

#[tokio::test]
async fn creation_succeeds_although_list_maintenance_hangs() {
    let (handles, sessions) = hanging(false);
    let making = Creation::new();

    let (handle, session) = tokio::join!(
        handles.create(&making, None),
        sessions.create(&making, None, SessionMetadata::default()),
    );

    assert_eq!(handle.unwrap().id, making.id);
    assert_eq!(session.unwrap().id, making.id);
}
