use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    Making, ScopeService, ServiceError, SessionMetadata, SessionService, StateHandleService,
    ThreadService, WriteOptions,
};
use threadkeep_domain::scope::{KeyRule, KvOperation, ScopeKey, ScopePolicies, ScopeValue};
use threadkeep_domain::{Fingerprint, Json, Refusal, ThreadPolicy};
use threadkeep_store::{Clock, Listing, Listings, StoreError};
use threadkeep_store_memory::MemoryStore;

struct House {
    clock: Clock,
    listings: Arc<dyn Listings>,
    scopes: ScopeService,
    handles: StateHandleService,
    sessions: SessionService,
}

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn house() -> House {
    let clock = Clock::system();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let listings: Arc<dyn Listings> = Arc::clone(&store) as _;
    let threads = ThreadService::new(Arc::clone(&store) as _, ThreadPolicy::THREAD, HOUR);
    let scopes = ScopeService::new(store, threads, ScopePolicies::DEFAULT, HOUR);
    House {
        handles: StateHandleService::new(scopes.clone(), Arc::clone(&listings), clock.clone()),
        sessions: SessionService::new(scopes.clone(), Arc::clone(&listings), clock.clone()),
        clock,
        listings,
        scopes,
    }
}

impl House {
    async fn listed(&self, name: &str) -> Vec<String> {
        let listing = Listing { name, owner: None };
        self.listings.list_page(&listing, 0, 100).await.unwrap()
    }

    async fn handle(&self, ttl: Option<Duration>) -> Uuid {
        let handle = self.handles.create(&Making::new(), ttl).await;
        handle.unwrap().id
    }

    async fn session(&self, customer_id: Option<Uuid>) -> Uuid {
        let metadata = SessionMetadata::default();
        let session = self
            .sessions
            .create(&Making::new(), customer_id, metadata)
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
async fn what_has_expired_leaves_the_list_when_others_are_made() {
    let house = house();
    for _ in 0..5 {
        house.handle(Some(HOUR)).await;
    }
    let kept = house.handle(None).await;

    house.clock.advance(2 * HOUR);
    let new = house.handle(None).await;

    let left = [new.to_string(), kept.to_string()];
    assert_eq!(house.listed("state-handles").await, left);
    let due = house.clock.now_ms() + 1_000;
    let due = house.listings.list_due("state-handles", due, 10).await;
    assert_eq!(due.unwrap(), [] as [String; 0]);
}

#[tokio::test]
async fn an_entry_that_was_never_made_is_on_no_page() {
    let house = house();
    let made = house.handle(None).await;
    let listing = Listing {
        name: "state-handles",
        owner: None,
    };
    for member in [Uuid::nil().to_string(), "no uuid".into()] {
        let at_ms = house.clock.now_ms() + 1;
        let added = house.listings.list_add(&listing, &member, at_ms, at_ms);
        added.await.unwrap();
    }

    let page = house.handles.list(0, 1).await.unwrap();

    let ids: Vec<_> = page.items.iter().map(|handle| handle.id).collect();
    assert_eq!(ids, [made]);
    assert_eq!(page.next_offset, None);
    assert_eq!(house.listed("state-handles").await, [made.to_string()]);
}

#[tokio::test]
async fn a_session_that_is_used_stays_on_the_list_and_another_leaves_it() {
    let house = house();
    let used = house.session(None).await;
    house.session(None).await;
    for _ in 0..3 {
        house.clock.advance(20 * DAY);
        house.sessions.get(used).await.unwrap();
    }

    let page = house.sessions.list(None, 0, 100).await.unwrap();

    let ids: Vec<_> = page.items.iter().map(|session| session.id).collect();
    assert_eq!(ids, [used]);
}

#[tokio::test]
async fn a_list_of_a_customer_has_its_sessions_alone() {
    let house = house();
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mine = house.session(Some(one)).await;
    house.session(Some(two)).await;
    house.session(None).await;

    let page = house.sessions.list(Some(one), 0, 100).await.unwrap();
    let whole = house.sessions.list(None, 0, 100).await.unwrap();

    let ids: Vec<_> = page.items.iter().map(|session| session.id).collect();
    assert_eq!(ids, [mine]);
    assert_eq!(whole.items.len(), 3);
}

#[tokio::test]
async fn a_scope_that_a_tool_has_made_is_no_session() {
    let house = house();
    let stray = Uuid::from_u128(7);
    let deleted = house.session(None).await;
    house.sessions.delete(deleted).await.unwrap();

    for id in [stray, deleted] {
        house.write(id).await;
        let value = Json::parse("{}").unwrap();
        let added = house.sessions.add_message(id, &Making::new(), value).await;
        assert!(is_not_found(&added));
        assert!(is_not_found(&house.sessions.get(id).await));
        assert!(is_not_found(&house.sessions.tool_scope(id).await));
        assert!(is_not_found(&house.sessions.delete(id).await));
    }
    let page = house.sessions.list(None, 0, 100).await.unwrap();
    assert!(page.items.is_empty());
}

#[tokio::test]
async fn what_has_ended_is_made_anew_by_a_repeat() {
    let house = house();
    let making = Making::recognized([7; 16], Fingerprint::of(&[b"{}"]));
    let create = async || house.handles.create(&making, Some(HOUR)).await.unwrap();
    let first = create().await;

    let again = create().await;
    house.clock.advance(2 * HOUR);
    let anew = create().await;

    assert_eq!(first, again);
    assert_eq!(anew.id, first.id);
    assert!(anew.created_ms > first.created_ms);
    assert_eq!(house.listed("state-handles").await.len(), 1);
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

    async fn list_look_again(&self, _: &str, _: &[(String, u64)]) -> Result<(), StoreError> {
        pending().await
    }
}

/// Returns services that use listings whose calls hang until the timeout. `list_add` hangs only if `add` is set.
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
async fn several_calls_together_take_no_longer_than_one_may() {
    let is_late = |error: &ServiceError| matches!(error, ServiceError::Store(StoreError::Timeout(ms)) if *ms == 4_000);
    let (handles, sessions) = hanging(true);
    let making = Making::new();

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
async fn what_is_made_is_answered_though_its_list_is_not_looked_after() {
    let (handles, sessions) = hanging(false);
    let making = Making::new();

    let (handle, session) = tokio::join!(
        handles.create(&making, None),
        sessions.create(&making, None, SessionMetadata::default()),
    );

    assert_eq!(handle.unwrap().id, making.id);
    assert_eq!(session.unwrap().id, making.id);
}
