//! The library for actix-web apps: the caller's thread in a handler, with the semantics of the HTTP API and no
//! server in between. The front page of the crate says what it promises.

mod background;
mod builder;
mod callbacks;
mod completion;
mod context;
mod current_thread;
mod endings;
mod extract;
mod fork;
mod history;
mod keys;
mod middleware;
mod owned;
mod pending_writes;
mod request_state;
mod response;
mod scope;
mod scope_target;
mod services;
mod session;
mod state;
mod tasks;
mod thread;
mod threads;
mod turn;

use background::{Background, Task};
use callbacks::{Callbacks, FIRST_PAUSE, Repeatable, repeatable};
use context::{OpenRequest, RequestContext, TypedMap};
use current_thread::CurrentThread;
use endings::{Endings, Ticket};
use fork::Forks;
use scope_target::ScopeTarget;
use services::Services;
use state::{from_json, to_json};
use turn::Turns;

pub use builder::{BuildError, ThreadsBuilder};
pub use callbacks::CallbackCounts;
pub use completion::RequestCompleted;
pub use current_thread::Receipt;
pub use fork::{ForkThread, Forked};
pub use history::History;
pub use keys::Keys;
pub use middleware::ThreadsMiddleware;
pub use owned::OwnedThreads;
pub use request_state::RequestState;
pub use scope::ScopeHandle;
pub use session::{Session, SessionState};
pub use state::ThreadState;
pub use tasks::Tasks;
pub use thread::Thread;
pub use threads::Threads;
pub use turn::{TakeTurn, Turn};
