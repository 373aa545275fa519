//! The Redis store: plain Redis 6.2 or later, or Valkey, without modules.
//!
//! A thread is one hash, so it has one expiry, one cluster slot and one read. The top of `lua/shared/prelude.lua`
//! documents its fields.

mod deployment;
#[cfg(test)]
mod fuzz;
mod keys;
mod kv;
mod log;
mod read_cache;
mod refusals;
mod scopes;
mod scripts;
mod startup;
mod threads;
mod transport;
mod unreadable;
mod upkeep;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;

use super::{
    Backend, CacheUse, Clock, Destroy, Destroyed, Found, Links, Part, Rotate, Rotated, Store,
    StoreError, Whole, WriteError,
};
use crate::domain::scope::ScopeId;
use crate::domain::{
    Access, Conditions, Key, Retention, Slice, Stamp, Thread, ThreadId, Write, Written, appends,
};
use keys::{KeyNames, bucket_number};
use kv::known::KnownNamespaces;
use log::interest::Interest;
use read_cache::ReadCache;
use scripts::Script;
use threads::arguments::WriteContext;
use threads::ended_turns::EndedTurns;
use threads::meta::Meta;
use transport::address::Address;
use transport::commands::{Command, command};
use transport::confirmation::Confirmation;
use transport::link::{Calls, Link};
use unreadable::Unreadable;

pub use transport::address::{RedisUrlError, check_redis_url};
pub use transport::node::Bounds;

/// Where Redis is and how it is used.
#[derive(Clone)]
pub struct RedisSettings {
    /// `redis://`, `rediss://` or `unix://`, with user, password and database, or one of the forms
    /// with several hosts.
    pub url: String,
    /// The prefix of all keys.
    pub key_prefix: String,
    /// How long a call may take in all, a repeated read included.
    pub timeout: Duration,
    /// How many calls each connection takes at a time.
    pub bounds: Bounds,
    /// Lifetimes of ended threads and events.
    pub retention: Retention,
    /// The number of replicas that must have a request's write before it is answered; 0 for none.
    ///
    /// Such writes wait until that many have confirmed, each on a connection of its own, and fail with
    /// [`StoreError::Unconfirmed`] if they do not in time. Background writes, such as leases and the ends of expired
    /// threads, do not wait.
    pub wait_replicas: u16,
    /// Bytes of memory for copies of states that were read or written; 0 for none. A copy is used only if Redis says that
    /// the thread is still the same. All clones share it.
    pub read_cache_bytes: u64,
}

impl RedisSettings {
    /// The documented defaults, at that URL: the prefix `tk`, 2 seconds, no replicas to wait for, and 64
    /// MiB of copies.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            key_prefix: "tk".into(),
            timeout: Duration::from_secs(2),
            bounds: Bounds::DEFAULT,
            retention: Retention::DEFAULT,
            wait_replicas: 0,
            read_cache_bytes: 64 * 1_048_576,
        }
    }
}

/// Threads in Redis. Clones share one connection; [`Backend::for_worker`] makes another.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    /// Another connection, for background work: its long replies delay no request.
    background: Arc<Link>,
    /// And those of a pool, so that a health check waits for neither.
    administration: Arc<Link>,
    names: Arc<KeyNames>,
    interest: Arc<Interest>,
    known: Arc<KnownNamespaces>,
    retention: Retention,
    clock: Clock,
    ended_turns: EndedTurns,
    /// Forks that hold a whole thread in the memory of this process.
    forking: Arc<Semaphore>,
    unconfirmed: Arc<AtomicU64>,
    unreadable: Arc<Unreadable>,
    /// None: every read fetches what it needs.
    cache: Option<Arc<ReadCache>>,
}

impl RedisStore {
    /// Connects, and checks that this server can be trusted with threads.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be reached, is too old, evicts keys that are
    /// still needed, or holds threads in another layout.
    pub async fn connect(settings: RedisSettings, clock: Clock) -> Result<Self, StoreError> {
        let names = KeyNames::new(&settings.key_prefix);
        let address =
            Address::parse(&settings.url).map_err(|error| StoreError::Unavailable(error.into()))?;
        let link = Link::new(address, settings.timeout, settings.bounds)?;
        let administration = link.administration();
        startup::check(&administration, &names, settings.wait_replicas).await?;
        let unconfirmed = Arc::default();
        let confirmation = Confirmation::of(settings.wait_replicas, &unconfirmed);
        Ok(Self {
            background: Arc::new(link.background()),
            link: Arc::new(link.confirming(confirmation)),
            administration: Arc::new(administration),
            names: Arc::new(names),
            interest: Arc::default(),
            known: Arc::default(),
            retention: settings.retention,
            clock,
            ended_turns: EndedTurns::default(),
            forking: Arc::new(Semaphore::new(threads::images::FORKING)),
            unconfirmed,
            unreadable: Arc::default(),
            cache: ReadCache::of_bytes(settings.read_cache_bytes).map(Arc::new),
        })
    }

    fn ahead(&self) -> u64 {
        self.clock.ahead_ms()
    }

    /// The arguments of scripts that change a thread without writing to its state.
    fn add_conditions(&self, cmd: &mut Command, conditions: &Conditions) {
        cmd.arg(self.ahead())
            .arg(threads::arguments::who(conditions.access))
            .arg(threads::arguments::idempotency(conditions.idempotency))
            .arg(threads::arguments::precondition(conditions.precondition))
            .arg(threads::arguments::turn(conditions.turn));
    }

    async fn write_context(&self, calls: &Calls<'_>) -> Result<WriteContext, StoreError> {
        let mark = &self.names.watch_all;
        let ahead_ms = self.ahead();
        Ok(WriteContext {
            ahead_ms,
            retention: self.retention,
            logs_all: self.interest.logs_all(calls, mark, ahead_ms).await?,
        })
    }

    async fn write_by_list(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
    ) -> Result<(Meta, Written), WriteError> {
        if appends(write.operations).next().is_some() {
            return Box::pin(self.write_with_history(calls, id, write, context)).await;
        }
        let mut cmd = Script::Write.call(WRITE_KEYS);
        self.add_write_keys(&mut cmd, id);
        threads::arguments::write(&mut cmd, write, context);
        let reply = calls.write(cmd).await?;
        threads::replies::written(reply, write)
    }

    /// The same with items that are appended to the history.
    async fn write_with_history(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
    ) -> Result<(Meta, Written), WriteError> {
        let scope = ScopeId::Thread(*id);
        let keys = self.names.scope(&scope);
        loop {
            let mut cmd = Script::WriteWithHistory.call(WRITE_KEYS + 3);
            self.add_write_keys(&mut cmd, id);
            cmd.arg(&keys.scope).arg(&keys.history).arg(&keys.ids);
            threads::arguments::write_with_history(&mut cmd, write, context);
            let reply = calls.write(cmd).await?;
            let Some(added) = scopes::replies::lacks_room(&reply) else {
                return threads::replies::written(reply, write);
            };
            let room = write.history.max_bytes.saturating_sub(added);
            self.make_room(calls, &keys, room).await?;
        }
    }

    fn add_write_keys(&self, cmd: &mut Command, id: &ThreadId) {
        let bucket = self.names.bucket_of(id);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(&bucket.deadlines)
            .arg(bucket.watch(id));
    }

    /// One set or one push of a living thread that is not watched, on one key and without the list
    /// script's tables; none when the script says that it is not for it.
    async fn write_fast(
        &self,
        calls: &Calls<'_>,
        id: &ThreadId,
        write: &Write<'_>,
        context: &WriteContext,
    ) -> Result<Option<(Meta, Written)>, WriteError> {
        let Some(fast) = threads::arguments::fast(write).filter(|_| !context.logs_all) else {
            return Ok(None);
        };
        let key = self.names.thread(id);
        // not in a cluster: few writes that wait are of one slot, and while that moves, a script with two keys is refused
        let mut cmd = fast.script.call_on(&key, !self.link.is_cluster());
        cmd.arg(threads::arguments::policy(write, context))
            .arg(threads::member::field(fast.key))
            .arg(&*fast.text);
        if fast.script == Script::Push {
            cmd.arg(fast.window.unwrap_or(0));
        }
        let reply = calls.write(cmd).await?;
        threads::replies::written_fast(reply, write)
    }
}

/// The keys of the list script.
const WRITE_KEYS: usize = 7;
/// How long the key of a probe of readiness stays. It is set again at the next probe.
const PROBE_MS: u64 = 60_000;

impl Backend for RedisStore {
    fn for_worker(&self) -> Arc<dyn Backend> {
        Arc::new(Self {
            link: Arc::new(self.link.another()),
            ..self.clone()
        })
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn get_state(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        self.read_state(id, access).await
    }

    async fn get_whole(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        self.read_whole(id, access).await
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        access: Access,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        self.read_values(id, access, keys).await
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        access: Access,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        self.read_value(id, access, key, slice).await
    }

    async fn get_stamp(&self, id: &ThreadId, access: Access) -> Result<Option<Stamp>, WriteError> {
        self.read_stamp(id, access).await
    }

    async fn get_keys(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        self.read_keys(id, access).await
    }

    async fn get_thread(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Thread>, WriteError> {
        self.read_thread(id, access).await
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let calls = self.link.calls();
        let context = &self.write_context(&calls).await?;
        let (meta, written) = match self.write_fast(&calls, id, write, context).await? {
            Some(done) => done,
            None => self.write_by_list(&calls, id, write, context).await?,
        };
        if !written.replayed {
            self.follow(id, write, meta);
        }
        Ok(written)
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        let bucket = self.names.bucket_of(id);
        let mut cmd = Script::Destroy.call(6);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(bucket.archive(id))
            .arg(&bucket.archives)
            .arg(&bucket.deadlines)
            .arg(self.ahead())
            .arg(threads::arguments::precondition(destroy.precondition))
            .arg(threads::arguments::idempotency(destroy.idempotency))
            .arg(threads::arguments::bounded_ms(destroy.tombstone))
            .arg(threads::arguments::archive_ms(&self.retention))
            .arg(threads::arguments::turn(destroy.turn))
            .arg(threads::arguments::who(destroy.access));
        let reply = self.link.calls().write(cmd).await;
        self.forget_copy(id);
        threads::replies::destroyed(reply?)
    }

    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError> {
        // of the same slot, so that one script can move everything
        let number = bucket_number(id);
        let to = ThreadId::random_where(|to| bucket_number(to) == number);
        let (bucket, conditions) = (self.names.bucket_of(id), &rotate.conditions);
        let mut cmd = Script::Rotate.call(6);
        cmd.arg(bucket.thread(id))
            .arg(bucket.answers(id))
            .arg(&bucket.log)
            .arg(&bucket.deadlines)
            .arg(bucket.thread(&to))
            .arg(bucket.answers(&to));
        self.add_conditions(&mut cmd, conditions);
        cmd.arg(threads::arguments::bounded_ms(rotate.tombstone))
            .arg(threads::arguments::archive_ms(&self.retention));
        let reply = self.link.calls().write(cmd).await;
        self.forget_copy(id);
        threads::replies::rotated(reply?)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let probes = self.names.probes().map(|key| {
            let mut cmd = command("SET");
            cmd.arg(key).arg("").arg("PX").arg(PROBE_MS);
            cmd
        });
        self.administration.calls().probe(probes).await
    }

    fn links(&self) -> Option<Links> {
        Some(Links {
            unconfirmed: self.unconfirmed.load(Ordering::Relaxed),
            ..self.link.links()
        })
    }

    fn cache_use(&self) -> Option<CacheUse> {
        self.cache.as_ref().map(|cache| cache.usage())
    }

    fn unreadable(&self) -> u64 {
        self.unreadable.skipped()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").finish_non_exhaustive()
    }
}

/// The URL may hold a password.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("key_prefix", &self.key_prefix)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
