//! How an app gets its [`Threads`].

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::Threads;
use threadkeep_domain::scope::ScopePolicies;
use threadkeep_domain::{KeyRing, KeyRingError, TTL_MAX, TTL_MIN, ThreadPolicy};
use threadkeep_events::{EventSettings, Events};
use threadkeep_identity::{
    CookieError, CookieSettings, Identity, OwnerProvider, Owners, ThreadIdProvider, TrustedProxies,
};
use threadkeep_service::{
    CheckpointService, ImageService, ScopeService, ThreadService, TurnService,
};
use threadkeep_store::{Backend, Clock, StoreError};
use threadkeep_store_memory::{MemorySettings, MemoryStore};
#[cfg(feature = "redis")]
use threadkeep_store_redis::{RedisSettings, RedisStore};

/// How long a call to the store may take, with all that it does again.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long all replicas must have had a key before it begins to sign.
#[cfg(feature = "redis")]
const SIGNING_KEY_WAIT: Duration = Duration::from_secs(600);

/// The lifetimes that a thread may have.
const TTLS: RangeInclusive<Duration> = TTL_MIN..=TTL_MAX;

/// Puts [`Threads`] together. Settings that you leave out have the defaults of the server.
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # async fn build(keys: &str) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use threadkeep::Threads;
///
/// let threads = Threads::builder()
///     .redis("redis://127.0.0.1:6379")
///     .signing_keys(keys) // main:<at least 32 bytes>
///     .ttl(Duration::from_secs(30 * 60))
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct ThreadsBuilder {
    source: Source,
    ring: Result<KeyRing, KeyRingError>,
    policy: ThreadPolicy,
    ttl: Option<Duration>,
    scopes: ScopePolicies,
    events: Option<EventSettings>,
    cookie: CookieSettings,
    provider: Option<Arc<dyn ThreadIdProvider>>,
    owners: Option<Owners>,
    max_threads_per_owner: Option<NonZeroU64>,
    proxies: TrustedProxies,
    origins: Vec<String>,
}

#[derive(Debug)]
enum Source {
    Memory(MemorySettings),
    #[cfg(feature = "redis")]
    Redis(RedisSettings),
}

/// Why [`ThreadsBuilder::build`] failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The signing keys are no keys.
    #[error("invalid signing keys")]
    SigningKeys(#[from] KeyRingError),
    /// The lifetime is out of bounds.
    #[error("the ttl must be from 60 s to 30 years")]
    Ttl,
    /// A browser would reject the cookie.
    #[error("invalid cookie")]
    Cookie(#[from] CookieError),
    /// The store does not answer, or refuses to be used so.
    #[error("cannot open the store")]
    Store(#[from] StoreError),
}

impl ThreadsBuilder {
    /// Over the memory of this process, with a random signing key.
    pub(super) fn new() -> Self {
        Self {
            source: Source::Memory(MemorySettings::default()),
            ring: Ok(KeyRing::random()),
            policy: ThreadPolicy::THREAD,
            ttl: None,
            scopes: ScopePolicies::DEFAULT,
            events: Some(EventSettings::default()),
            cookie: CookieSettings::default(),
            provider: None,
            owners: None,
            max_threads_per_owner: None,
            proxies: TrustedProxies::default(),
            origins: Vec::new(),
        }
    }

    /// Keeps threads in Redis: `redis://`, `rediss://` or `unix://`, with user, password and database, or
    /// one of the forms with several hosts; `rediss://` takes the feature `tls`. Replicas of an app that use
    /// the same Redis share threads.
    #[cfg(feature = "redis")]
    pub fn redis(self, url: impl Into<String>) -> Self {
        self.redis_with(RedisSettings::new(url))
    }

    /// Keeps threads in Redis, as these settings say.
    #[cfg(feature = "redis")]
    pub fn redis_with(mut self, settings: RedisSettings) -> Self {
        self.source = Source::Redis(settings);
        self
    }

    /// Keeps threads in the memory of this process, as these settings say.
    pub fn memory_with(mut self, settings: MemorySettings) -> Self {
        self.source = Source::Memory(settings);
        self
    }

    /// Signs with the first key of a list, `name:secret,name:secret`, and accepts ids that any of them has
    /// signed. A secret has at least 32 bytes, such as `openssl rand -hex 32` prints. Without keys, one is made
    /// up, and ids end with the process. To rotate, add a key at the end of the list in all replicas, and then
    /// name it by [`signing_key`](Self::signing_key).
    pub fn signing_keys(mut self, list: &str) -> Self {
        self.ring = KeyRing::parse(list);
        self
    }

    /// Signs with the key of that name. Replicas that handle events over one Redis tell each other which keys
    /// they have, and none signs with a key before all have had it for ten minutes.
    pub fn signing_key(mut self, name: &str) -> Self {
        self.ring = self.ring.and_then(|ring| ring.choose(name));
        self
    }

    /// Lets a thread live for so long after its last use: 60 s to 30 years, by default one hour.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets all limits and lifetimes of threads at once, except what [`ttl`](Self::ttl) has set.
    pub fn policy(mut self, policy: ThreadPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the limits and lifetimes of scopes.
    pub fn scope_policies(mut self, policies: ScopePolicies) -> Self {
        self.scopes = policies;
        self
    }

    /// Handles events as these settings say.
    pub fn events(mut self, settings: EventSettings) -> Self {
        self.events = Some(settings);
        self
    }

    /// Starts nothing in the background. Threads still expire, but the app gets no events, and
    /// [`Thread::on_destroyed`](super::Thread::on_destroyed) fails. Use it for an app that shares Redis with others of
    /// which some handle events. Such an app takes no part in the agreement on a signing key: give it a new key before
    /// any other replica signs with it.
    pub fn without_events(mut self) -> Self {
        self.events = None;
        self
    }

    /// Sets the cookie that browsers keep the id in.
    pub fn cookie(mut self, cookie: CookieSettings) -> Self {
        self.cookie = cookie;
        self
    }

    /// Takes ids from that provider instead of signed ids.
    pub fn provider(mut self, provider: Arc<dyn ThreadIdProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Finds the owner on whose behalf a request acts, such as the logged-in user: a type of yours, or a closure over
    /// the request. The first write of an owner binds a thread that has none. A thread of another owner answers 403
    /// `not_the_owner`, and a request without an owner to a thread that has one 401 `owner_required`, whatever the handler
    /// does with it.
    ///
    /// ```
    /// use actix_web::HttpRequest;
    /// use threadkeep::Threads;
    /// use threadkeep::identity::ProviderError;
    /// use threadkeep::owners::Owner;
    ///
    /// let user = |request: &HttpRequest| {
    ///     let user = request.headers().get("x-user"); // set by a proxy of yours, or look up your session
    ///     let user = user.and_then(|value| value.to_str().ok()).map(Owner::new);
    ///     user.transpose().map_err(|error| ProviderError::Untrusted(Some(error.into())))
    /// };
    /// let builder = Threads::builder().owners(user);
    /// ```
    pub fn owners(mut self, provider: impl OwnerProvider + 'static) -> Self {
        self.owners = Some(Owners::new(provider, false));
        self
    }

    /// Finds owners like [`owners`](Self::owners), and answers 401 `owner_required` to requests without one.
    pub fn required_owners(mut self, provider: impl OwnerProvider + 'static) -> Self {
        self.owners = Some(Owners::new(provider, true));
        self
    }

    /// Lets an owner have up to `limit` threads. A write that would make or bind one more is refused with
    /// [`Refusal::TooManyThreads`](crate::errors::Refusal::TooManyThreads). By default there is no limit.
    pub fn max_threads_per_owner(mut self, limit: NonZeroU64) -> Self {
        self.max_threads_per_owner = Some(limit);
        self
    }

    /// Believes these proxies what they say of scheme and client.
    pub fn trusted_proxies(mut self, proxies: TrustedProxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Lets pages of these origins write by cookie, besides those of the app's own host.
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = String>) -> Self {
        self.origins = origins.into_iter().collect();
        self
    }

    /// Opens the store. Work after a response runs on the Tokio runtime that this is called on, which has
    /// to outlive the server.
    ///
    /// # Errors
    /// [`BuildError`].
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[cfg_attr(
        not(feature = "redis"),
        expect(clippy::unused_async, reason = "only Redis is waited for")
    )]
    pub async fn build(mut self) -> Result<Threads, BuildError> {
        self.policy.ttl = self.ttl.unwrap_or(self.policy.ttl);
        let ring = self.ring.clone()?;
        if !TTLS.contains(&self.policy.ttl) {
            return Err(BuildError::Ttl);
        }
        self.cookie.check()?;
        match self.source {
            Source::Memory(settings) => Ok(self.in_memory(ring, settings)),
            #[cfg(feature = "redis")]
            Source::Redis(ref settings) => {
                let timeout = settings.timeout;
                let store = RedisStore::connect(settings.clone(), Clock::system()).await?;
                let threads = self.over(Arc::new(store), ring.clone(), timeout);
                if let Some(events) = threads.events() {
                    events.share_signing_keys(&ring, SIGNING_KEY_WAIT).await?;
                }
                Ok(threads)
            }
        }
    }

    /// Over the memory of this process, which cannot fail.
    pub(super) fn in_memory(self, ring: KeyRing, settings: MemorySettings) -> Threads {
        let store = MemoryStore::with_settings(Clock::system(), settings);
        self.over(Arc::new(store), ring, TIMEOUT)
    }

    /// Over that back end, with settings that hold.
    fn over(self, backend: Arc<dyn Backend>, ring: KeyRing, timeout: Duration) -> Threads {
        let service = ThreadService::new(Arc::clone(&backend) as _, self.policy, timeout);
        let service = service.limit_owners(Arc::clone(&backend) as _, self.max_threads_per_owner);
        let scopes = ScopeService::new(
            Arc::clone(&backend) as _,
            service.clone(),
            self.scopes,
            timeout,
        );
        let turns = TurnService::new(Arc::clone(&backend) as _, service.clone(), Arc::default());
        let checkpoints = CheckpointService::new(Arc::clone(&backend) as _, service.clone());
        let (images, buckets) = (Arc::clone(&backend), Arc::clone(&backend));
        let images = ImageService::new(images as _, buckets as _, self.scopes);
        let identity = Identity::new(ring, self.cookie)
            .trust(self.proxies)
            .allow_origins(self.origins);
        let identity = match self.provider {
            Some(provider) => identity.provide(provider),
            None => identity,
        };
        let identity = match self.owners {
            Some(owners) => identity.own(owners),
            None => identity,
        };
        let threads = Threads::new(service, identity)
            .with_backend(Arc::clone(&backend))
            .with_scopes(scopes)
            .with_turns(turns)
            .with_checkpoints(checkpoints)
            .with_forks(images);
        match self.events {
            Some(settings) => threads.with_events(Events::start(backend, settings)),
            None => threads,
        }
    }
}
