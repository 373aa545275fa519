//! Conversation state for web apps and agents. A thread has a JSON state and a signed id; writes are atomic merges.
//! Threads are stored in Redis or in memory.
//!
//! The program is a server with an HTTP API; the README describes this API. In an actix-web app, the library stores the
//! state of each caller with the same semantics, but without a separate server:
//!
//! ```no_run
#![cfg_attr(doc, doc = include_str!("../examples/quickstart.rs"))]
//! ```
//!
//! ```toml
//! [dependencies]
//! actix-web = "4"
//! serde_json = "1"
//! threadkeep = { version = "0.1", default-features = false, features = ["redis"] }
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `server` (default) | the program with its HTTP API and other protocols, and their dependencies |
//! | `redis` (part of `server`) | threads in Redis; without this feature, threads are kept in process memory |
//! | `tls` (part of `server`) | encrypted connections to Redis: `rediss://` |
//! | `jwt` (part of `server`) | [`identity`] from JSON web tokens |
//!
//! # Getting started
//!
//! | to | use | example |
//! |---|---|---|
//! | wrap an app, and choose a store | [`Threads`], [`ThreadsBuilder`], [`settings`] | `quickstart` |
//! | read and change the caller's state | [`Thread`], [`ThreadState`] | `quickstart` |
//! | react to the end of a thread, and process each event once | [`Events`], [`Thread::on_destroyed`] | `chat` |
//! | run work after the response, and carry values through a request | [`Session`], [`RequestState`] | `background` |
//! | store keys, tasks and a history, for a thread or shared | [`Keys`], [`Tasks`], [`History`], [`scopes`] | `agent` |
//! | identify callers by your own login instead of a signed id | [`identity`] | `logins` |
//! | assign threads to users, and list them | [`ThreadsBuilder::owners`], [`Threads::owned_by`], [`owners`] | `logins` |
//!
//! The examples are in `examples/`. Each file explains how to run it, for example with
//! `cargo run --example quickstart`.
//!
//! # Store calls
//!
//! A handler that neither reads nor writes makes no store calls. The first read fetches the state. Writes are queued,
//! and sent as one merge before the response. A write requires no read. The state is never written back as a whole:
//! when two requests push at the same moment, both values are kept. Calls to [`Keys`], [`Tasks`] and [`History`] are
//! not queued; they go to the store immediately.
//!
//! # Errors
//!
//! If a handler returns an error or a 5xx response, its queued writes are discarded, and a warning is logged.
//! [Flushed](Thread::flush) writes are kept. If the merge fails, the client receives an error in the format of the HTTP
//! API instead of the handler's response. A successful response therefore means that the writes are stored. Handlers
//! can also return [`ApiError`].

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]
mod actix;

// The program is not part of the library's interface.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod app;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod config;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod telemetry;

pub use actix::{
    Attempt, BuildError, CallbackCounts, EffectError, ForkThread, Forked, History, Keys, Receipt,
    RequestCompleted, RequestState, ScopeHandle, Session, SessionState, TakeTurn, Tasks, Thread,
    ThreadState, Threads, ThreadsBuilder, ThreadsMiddleware, ToolCall, Turn,
};
#[doc(inline)]
pub use threadkeep_domain::{CheckpointName, ThreadId};
#[doc(inline)]
pub use threadkeep_events::{EventType, EventTypes, Events, Notice};
#[doc(inline)]
pub use threadkeep_store::CheckpointHead;
#[doc(inline)]
pub use threadkeep_web::{ApiError, SessionId};

/// The event log, event delivery, and archives of ended threads.
pub mod events {
    #[doc(inline)]
    pub use threadkeep_domain::{Origin, TraceParent};
    #[doc(inline)]
    pub use threadkeep_events::{
        Archive, ArchiveHead, Completed, Counter, DeliveryCounters, EndReason, Event,
        EventCounters, EventId, EventKind, EventSettings, EventType, EventTypes, Events, Lag, Life,
        Notice, Parked, ParkedPage, Pending, PendingList, Position, SubscribeError,
    };
}

/// Identification of callers by signed thread ids, headers and tokens.
pub mod identity {
    #[doc(inline)]
    pub use threadkeep_identity::{
        CookieError, CookieSettings, HeaderOwner, IdentityError, KeyRingError, OwnerProvider,
        ProviderError, ProxyError, SameSite, Secure, THREAD_ID, ThreadId, ThreadIdError,
        ThreadIdProvider, TrustedHeader, TrustedProxies,
    };
    #[cfg(feature = "jwt")]
    #[doc(inline)]
    pub use threadkeep_identity::{
        Jwks, JwksCounts, JwksUrl, JwksUrlError, JwtError, JwtOwner, JwtSettings, JwtSubject,
    };
}

/// Causes of an [`ApiError`] or a [`BuildError`], other than those in [`identity`] and [`scopes`].
pub mod errors {
    #[doc(inline)]
    pub use threadkeep_domain::effects::EffectRefusal;
    #[doc(inline)]
    pub use threadkeep_domain::{
        CheckpointNameError, ContentError, EntryKeyError, EventIdError, EventTypeError, JsonError,
        KeyError, NamedSecretError, NamespaceError, ObjectError, ObjectFault, RateLimited,
        RateName, Refusal, TraceParentError,
    };
    #[doc(inline)]
    pub use threadkeep_service::ServiceError;
    #[doc(inline)]
    pub use threadkeep_store::{StoreError, WriteError};
}

/// Owners of threads, and the lists of their threads.
pub mod owners {
    pub use crate::actix::OwnedThreads;
    #[doc(inline)]
    pub use threadkeep_domain::{Life, Owner, OwnerError, OwnerTag, Stamp, Thread as ThreadObject};
    #[doc(inline)]
    pub use threadkeep_identity::OwnerProvider;
    #[doc(inline)]
    pub use threadkeep_store::{OwnedPosition, OwnerUsage, ThreadOrder, ThreadPage};
}

/// Arguments and results of [`Keys`], [`Tasks`] and [`History`].
pub mod scopes {
    #[doc(inline)]
    pub use threadkeep_domain::Json;
    #[doc(inline)]
    pub use threadkeep_domain::scope::{
        Appended, HistoryItem, HistorySummary, ItemId, NewTask, ScopeError, ScopeId, ScopeName,
        Segment, StoredItem, Task, TaskChange, TaskError, TaskRef, TaskStatus,
    };
    #[doc(inline)]
    pub use threadkeep_store::{HistoryFrom, HistoryPage};
}

/// Settings of a [`ThreadsBuilder`]: stores, limits and lifetimes.
pub mod settings {
    #[doc(inline)]
    pub use threadkeep_domain::scope::{HistoryLimit, ScopePolicies};
    #[doc(inline)]
    pub use threadkeep_domain::{Retention, ThreadPolicy};
    #[doc(inline)]
    pub use threadkeep_store_memory::MemorySettings;
    #[cfg(feature = "redis")]
    #[doc(inline)]
    pub use threadkeep_store_redis::{CallLimits, ClientCertificate, RedisSettings};
}

/// Compiles the Rust examples in the documentation.
#[cfg(all(doctest, feature = "redis"))]
mod documents {
    #[doc = include_str!("../docs/modelrelay.md")]
    mod modelrelay {}
    #[doc = include_str!("../docs/rust.md")]
    mod rust {}
}
