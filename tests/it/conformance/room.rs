//! A store under test with its clock, and shorthands for operations on threads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use threadkeep_domain::scope::ScopePolicies;
use threadkeep_domain::{
    Conditions, EntryPolicy, Fingerprint, Guard, GuardedValue, IdempotencyKey, Json, Key, KeyRing,
    MetadataChange, Mismatch, Operation, Precondition, Refusal, ReservedKeys, Retention,
    SigningKey, Slice, Stamp, Thread, ThreadId, ThreadPolicy, Tombstone, Value, Write, Written,
};
use threadkeep_events::Events;
use threadkeep_http::{Api, Compressor, Readiness};
use threadkeep_identity::{ApiKey, ApiKeys, CookieSettings, Identity};
use threadkeep_service::{
    ArchiveService, CheckpointService, EffectService, ImageService, NamespaceService, OwnerService,
    ScopeService, ThreadService, TurnService,
};
use threadkeep_stats::Stats;
use threadkeep_store::{Backend, Clock, Destroy, Destroyed, Part, Reader, Store, WriteError};
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_redis::{CallLimits, RedisSettings, RedisStore};
use threadkeep_webhooks::{WebhookSettings, Webhooks};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::support::READ_CACHE_BYTES;
use crate::support::cluster::{self, RedisCluster};
use crate::support::redis::{self, RedisServer};
use crate::support::replicated::{self, Replicated};

#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
    redis: Option<Deployment>,
}

/// Time limit for a store call, longer than any test needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connection settings of a store, and its Redis servers, which run for as long as this value exists.
#[derive(Debug, Clone)]
struct Deployment {
    url: String,
    wait_replicas: u16,
    timeout: Duration,
    _servers: Arc<dyn fmt::Debug + Send + Sync>,
}

pub(crate) fn memory() -> Room {
    memory_by(Clock::system())
}

/// Returns an embedded store with a shared clock.
pub(crate) fn memory_by(clock: Clock) -> Room {
    Room::of(&MemoryStore::new(clock.clone()), clock)
}

pub(crate) async fn redis() -> Room {
    redis_on(redis::shared(), Clock::system()).await
}

pub(crate) async fn redis_by(clock: Clock) -> Room {
    redis_on(redis::shared(), clock).await
}

pub(crate) async fn redis_on(server: Arc<RedisServer>, clock: Clock) -> Room {
    let deployment = Deployment {
        url: server.url(),
        wait_replicas: 0,
        timeout: PATIENCE,
        _servers: server,
    };
    redis_keeping(deployment, clock, Retention::DEFAULT).await
}

/// Returns a Redis store with a key prefix that other stores may share.
pub(crate) async fn redis_at(url: &str, key_prefix: &str) -> Room {
    let settings = RedisSettings {
        key_prefix: key_prefix.into(),
        timeout: PATIENCE,
        ..RedisSettings::new(url)
    };
    let clock = Clock::system();
    let store = RedisStore::connect(settings, clock.clone()).await.unwrap();
    Room {
        store: Arc::new(store.clone()),
        backend: Arc::new(store),
        clock,
        redis: None,
    }
}

pub(crate) async fn cluster() -> Room {
    cluster_on(cluster::shared()).await
}

pub(crate) async fn cluster_on(cluster: Arc<RedisCluster>) -> Room {
    cluster_within(PATIENCE, cluster).await
}

pub(crate) async fn cluster_within(timeout: Duration, cluster: Arc<RedisCluster>) -> Room {
    let deployment = Deployment {
        url: cluster.url(),
        wait_replicas: 0,
        timeout,
        _servers: cluster,
    };
    redis_keeping(deployment, Clock::system(), Retention::DEFAULT).await
}

/// Returns a Redis store on a shared server that has a replica. The store's writes wait for the replica.
pub(crate) async fn confirmed() -> Room {
    confirmed_on(replicated::shared()).await
}

pub(crate) async fn confirmed_on(servers: Arc<Replicated>) -> Room {
    confirmed_within(PATIENCE, servers).await
}

pub(crate) async fn confirmed_within(timeout: Duration, servers: Arc<Replicated>) -> Room {
    let deployment = Deployment {
        url: servers.master.url(),
        wait_replicas: 1,
        timeout,
        _servers: servers,
    };
    redis_keeping(deployment, Clock::system(), Retention::DEFAULT).await
}

pub(crate) async fn confirmed_cluster() -> Room {
    let cluster = cluster::shared();
    let deployment = Deployment {
        url: cluster.url(),
        wait_replicas: 1,
        timeout: PATIENCE,
        _servers: cluster,
    };
    redis_keeping(deployment, Clock::system(), Retention::DEFAULT).await
}

/// Returns the memory limit of the read cache: the environment variable [`READ_CACHE_BYTES`], or the default.
fn read_cache_bytes() -> u64 {
    match std::env::var(READ_CACHE_BYTES) {
        Ok(bytes) => bytes.parse().unwrap(),
        Err(_) => RedisSettings::new("").read_cache_bytes,
    }
}

async fn redis_keeping(deployment: Deployment, clock: Clock, retention: Retention) -> Room {
    let settings = RedisSettings {
        key_prefix: redis::unique_prefix(),
        timeout: deployment.timeout,
        // some tests queue more calls than the default limit allows
        bounds: CallLimits {
            waiting: usize::MAX,
            ..CallLimits::DEFAULT
        },
        retention,
        wait_replicas: deployment.wait_replicas,
        read_cache_bytes: read_cache_bytes(),
        ..RedisSettings::new(deployment.url.as_str())
    };
    let store = RedisStore::connect(settings, clock.clone()).await.unwrap();
    Room {
        store: Arc::new(store.clone()),
        backend: Arc::new(store),
        clock,
        redis: Some(deployment),
    }
}

impl Room {
    pub(crate) fn services(&self) -> (ThreadService, ScopeService) {
        let timeout = Duration::from_secs(30);
        let threads = ThreadService::new(Arc::clone(&self.store), ThreadPolicy::THREAD, timeout);
        let backend = Arc::clone(&self.backend) as _;
        let policies = ScopePolicies::DEFAULT;
        let scopes = ScopeService::new(backend, threads.clone(), policies, timeout);
        (threads, scopes)
    }

    pub(crate) fn images(&self) -> ImageService {
        let (images, buckets) = (Arc::clone(&self.backend), Arc::clone(&self.backend));
        ImageService::new(images as _, buckets as _, ScopePolicies::DEFAULT)
    }

    pub(crate) fn api(&self, events: Events, webhooks: WebhookSettings) -> Api {
        let ring = KeyRing::new(vec![SigningKey::new("main", b"a secret of the tests")]).unwrap();
        let (service, scopes) = self.services();
        Api {
            turns: TurnService::new(
                Arc::clone(&self.backend) as _,
                service.clone(),
                Arc::default(),
            ),
            effects: EffectService::new(Arc::clone(&self.backend) as _, service.clone()),
            checkpoints: CheckpointService::new(Arc::clone(&self.backend) as _, service.clone()),
            archives: ArchiveService::new(Arc::clone(&self.backend) as _, service.clone()),
            service,
            scopes,
            images: self.images(),
            owners: OwnerService::new(
                Arc::clone(&self.backend) as _,
                Arc::clone(&self.backend) as _,
            ),
            namespaces: NamespaceService::new(Arc::clone(&self.backend) as _, EntryPolicy::DEFAULT),
            reserved_keys: ReservedKeys::default(),
            webhooks: Webhooks::start(events.clone(), webhooks),
            events,
            identity: Identity::new(ring, CookieSettings::default()),
            api_keys: ApiKeys::new([(ApiKey::named("ops"), "secret")]),
            readiness: Readiness::default(),
            settings: Arc::default(),
            stats: Stats::default(),
            compressor: Compressor::default(),
        }
    }

    pub(crate) fn of(store: &MemoryStore, clock: Clock) -> Self {
        Self {
            store: Arc::new(store.clone()),
            backend: Arc::new(store.clone()),
            clock,
            redis: None,
        }
    }

    pub(crate) async fn keeping(&self, retention: Retention) -> Self {
        let clock = self.clock.clone();
        if let Some(deployment) = &self.redis {
            return redis_keeping(deployment.clone(), clock, retention).await;
        }
        let store = MemoryStore::with_retention(clock.clone(), retention);
        std::future::ready(Self::of(&store, clock)).await
    }

    pub(crate) fn subject(&self) -> Subject {
        self.subject_under(ThreadPolicy::THREAD)
    }

    pub(crate) fn subject_under(&self, policy: ThreadPolicy) -> Subject {
        Subject {
            policy,
            ..Subject::of(Arc::clone(&self.store))
        }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Calls `act` for each number, and sets the clock back as if no time had passed. Advance the clock first.
    pub(crate) async fn for_each_concurrently(&self, numbers: Range<u64>, act: impl AsyncFn(u64)) {
        const BATCH: u64 = 256;
        for first in numbers.clone().step_by(BATCH as usize) {
            let start = Instant::now();
            stream::iter(first..numbers.end.min(first + BATCH))
                .for_each_concurrent(64, |number| act(number))
                .await;
            self.clock.set_back(start.elapsed());
        }
    }
}

/// A thread in a store, and its policy. Store errors other than refusals fail the test.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) id: ThreadId,
    pub(crate) policy: ThreadPolicy,
}

impl Subject {
    pub(crate) fn of(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            id: ThreadId::random(),
            policy: ThreadPolicy::THREAD,
        }
    }

    pub(crate) fn blank(&self) -> Write<'_> {
        Write::new(&self.policy)
    }

    pub(crate) async fn write(&self, write: &Write<'_>) -> Result<Written, Refusal> {
        refused(self.store.write(&self.id, write).await)
    }

    pub(crate) async fn try_merge(&self, operations: &[Operation]) -> Result<Written, Refusal> {
        let write = Write {
            operations,
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn merge(&self, operations: &[Operation]) -> Written {
        self.try_merge(operations).await.unwrap()
    }

    pub(crate) async fn merge_with_tombstone_rule(
        &self,
        tombstone: Tombstone,
        operations: &[Operation],
    ) -> Result<Written, Refusal> {
        let write = Write {
            operations,
            tombstone,
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn merge_if(
        &self,
        precondition: Precondition,
        operations: &[Operation],
    ) -> Result<Written, Refusal> {
        let write = Write {
            operations,
            conditions: Conditions {
                precondition: Some(precondition),
                ..Conditions::default()
            },
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn merge_once(
        &self,
        key: IdempotencyKey,
        operations: &[Operation],
    ) -> Result<Written, Refusal> {
        let write = Write {
            operations,
            conditions: Conditions {
                idempotency: Some(key),
                ..Conditions::default()
            },
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn set_metadata(&self, metadata: &str) -> Result<Written, Refusal> {
        let change = MetadataChange {
            new: json(metadata),
            old: None,
        };
        let write = Write {
            metadata: Some(&change),
            ..self.blank()
        };
        self.write(&write).await
    }

    pub(crate) async fn set_ttl(&self, ttl: Duration) -> Written {
        let write = Write {
            ttl: Some(ttl),
            ..self.blank()
        };
        self.write(&write).await.unwrap()
    }

    /// Returns a request to end the thread without conditions.
    pub(crate) fn end(&self) -> Destroy {
        Destroy {
            tombstone: self.policy.tombstone,
            conditions: Conditions::default(),
        }
    }

    pub(crate) async fn destroy(&self) -> Destroyed {
        self.destroy_by(&self.end()).await.unwrap()
    }

    pub(crate) async fn destroy_by(&self, destroy: &Destroy) -> Result<Destroyed, Refusal> {
        refused(self.store.destroy(&self.id, destroy).await)
    }

    pub(crate) async fn state(&self) -> Option<String> {
        let found = self.store.get_state(&self.id, Reader::ALL).await.unwrap()?;
        Some(String::from_utf8(found.content.to_vec()).unwrap())
    }

    pub(crate) async fn stamp(&self) -> Stamp {
        let found = self.store.get_keys(&self.id, Reader::ALL).await.unwrap();
        found.map_or(Stamp::default(), |found| found.stamp)
    }

    pub(crate) async fn value(&self, key: &str) -> Option<String> {
        self.part(key, None).await.map(|part| text(&part))
    }

    pub(crate) async fn part(&self, key_text: &str, slice: Option<Slice>) -> Option<Part> {
        let found = self
            .store
            .get_value(&self.id, Reader::ALL, &key(key_text), slice)
            .await;
        found.unwrap()?.content
    }

    pub(crate) async fn thread(&self) -> Option<Thread> {
        self.store.get_thread(&self.id, Reader::ALL).await.unwrap()
    }

    pub(crate) async fn exists(&self) -> bool {
        self.thread().await.is_some()
    }
}

/// Runs `work` on a different OS thread, because an embedded store never yields and would block the current thread.
pub(crate) fn in_parallel<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work))
}

/// Returns the answer or the refusal. Any other store error fails the test.
pub(crate) fn refused<T>(answer: Result<T, WriteError>) -> Result<T, Refusal> {
    answer.map_err(|error| match error {
        WriteError::Refused(refusal) => refusal,
        WriteError::Store(error) => panic!("the store failed: {error:?}"),
    })
}

pub(crate) fn text(part: &Part) -> String {
    String::from_utf8(part.json.to_vec()).unwrap()
}

pub(crate) fn key(text: &str) -> Key {
    Key::any(text).unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(crate) fn set(key_text: &str, value: &str) -> Operation {
    Operation::Set {
        key: key(key_text),
        value: Value::parse(value).unwrap(),
    }
}

pub(crate) fn delete(key_text: &str) -> Operation {
    Operation::Delete { key: key(key_text) }
}

pub(crate) fn push(key_text: &str, element: &str) -> Operation {
    Operation::Push {
        key: key(key_text),
        value: json(element),
        max_records: None,
        mismatch: Mismatch::Refuse,
    }
}

pub(crate) fn push_window(key_text: &str, element: &str, max_records: u64) -> Operation {
    Operation::Push {
        key: key(key_text),
        value: json(element),
        max_records: Some(max_records),
        mismatch: Mismatch::Refuse,
    }
}

pub(crate) fn pop(key_text: &str, count: u64) -> Operation {
    Operation::Pop {
        key: key(key_text),
        count,
    }
}

pub(crate) fn increment(key_text: &str, by: i64) -> Operation {
    Operation::Increment {
        key: key(key_text),
        by,
    }
}

pub(crate) fn still(key_text: &str, object: &str) -> Guard {
    Guard {
        key: key(key_text),
        expected: GuardedValue::Object(json(object)),
    }
}

pub(crate) fn guard_not_an_object(key_text: &str) -> Guard {
    Guard {
        key: key(key_text),
        expected: GuardedValue::NotAnObject,
    }
}

pub(crate) fn once(name: &str, request: &str) -> IdempotencyKey {
    IdempotencyKey {
        digest: Fingerprint::of(&[name.as_bytes()]),
        request: Fingerprint::of(&[request.as_bytes()]),
    }
}

pub(crate) fn numbered_key(number: u64) -> IdempotencyKey {
    once(&format!("key {number}"), &format!("request {number}"))
}
