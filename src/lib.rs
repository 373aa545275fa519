//! Conversation state for web apps and agents: threads with a JSON state behind a signed id, changed by
//! atomic merges, in Redis or in memory.
//!
//! As a program threadkeep is a server with an HTTP API, described in the README. As a library it keeps the
//! state of an actix-web app's callers in process, with the same rules and no server in between:
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
//! | `server` (default) | the program, its HTTP API and further protocols, and the dependencies that only they need |
//! | `redis` (part of `server`) | threads in Redis; without it, they are in the memory of the process |
//! | `tls` (part of `server`) | encrypted connections to Redis: `rediss://` |
//! | `jwt` (part of `server`) | [`identity`] by JSON web tokens |
//!
//! # Where to begin
//!
//! | to | use | example |
//! |---|---|---|
//! | wrap an app, and choose where threads are kept | [`Threads`], [`ThreadsBuilder`], [`settings`] | `quickstart` |
//! | read and change the caller's state | [`Thread`], [`ThreadState`] | `quickstart` |
//! | learn that a thread has ended, and call code for each event once | [`Events`], [`Thread::on_destroyed`] | `chat` |
//! | work after the response, and carry values through a request | [`Session`], [`RequestState`] | `background` |
//! | keep keys, a task list and a history, of a thread or shared | [`Keys`], [`Tasks`], [`History`], [`scopes`] | `agent` |
//! | find the thread by your own login instead of a signed id | [`identity`] | `logins` |
//! | give threads to users, and list those of one | [`ThreadsBuilder::owners`], [`Threads::owned_by`], [`owners`] | `logins` |
//!
//! Each example is a file in `examples/` that says how to try it: `cargo run --example quickstart`.
//!
//! # What a request costs
//!
//! A handler that neither reads nor writes costs nothing at the store. The state is fetched at the first read.
//! Writes are queued, and sent as one merge before the response, whether or not the state was read. The
//! state is never written back as a whole, so when two requests push at the same moment, both values are kept.
//!
//! Calls of [`Keys`], [`Tasks`] and [`History`] are not queued: each goes to the store at once.
//!
//! # When something fails
//!
//! If a handler fails, with an error or a 5xx response, its queued writes are discarded, and a line is logged.
//! [Flushed](Thread::flush) writes stay. If the merge fails, the response becomes the error of the HTTP API, so a success
//! is always a success. [`ApiError`] is such an error, and a handler can return it.

#![cfg_attr(docsrs, feature(doc_cfg))]
mod actix;

// The program is no part of the library's interface.
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
    BuildError, CallbackCounts, ForkThread, Forked, History, Keys, Receipt, RequestCompleted,
    RequestState, ScopeHandle, Session, SessionState, TakeTurn, Tasks, Thread, ThreadState,
    Threads, ThreadsBuilder, ThreadsMiddleware, Turn,
};
#[doc(inline)]
pub use threadkeep_domain::{CheckpointName, ThreadId};
#[doc(inline)]
pub use threadkeep_events::{EventType, EventTypes, Events, Notice};
#[doc(inline)]
pub use threadkeep_store::CheckpointHead;
#[doc(inline)]
pub use threadkeep_web::{ApiError, SessionId};

/// Events: reading the log and handing out its events, and ending expired threads.
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

/// The caller: the signed thread id of a request, and the headers that return it.
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

/// Causes of an [`ApiError`] or a [`BuildError`], besides those in [`identity`] and [`scopes`].
pub mod errors {
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
    pub use threadkeep_store::{OwnedPlace, OwnerUsage, ThreadOrder, ThreadPage};
}

/// Arguments and results of the [`Keys`], the [`Tasks`] and the [`History`] of a thread or of another scope.
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

/// Settings of a [`ThreadsBuilder`]: where threads are kept, and how large they may grow.
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

/// Compiles the Rust of the documents.
#[cfg(all(doctest, feature = "redis"))]
mod documents {
    #[doc = include_str!("../docs/modelrelay.md")]
    mod modelrelay {}
    #[doc = include_str!("../docs/rust.md")]
    mod rust {}
}
