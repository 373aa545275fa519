pub(super) mod address;
mod breaker;
mod call;
mod cluster;
pub(super) mod commands;
pub(super) mod confirmation;
mod endpoint;
mod fault;
pub(super) mod fields;
pub(super) mod hash_slot;
mod limiter;
pub(super) mod link;
pub(super) mod node;
mod registry;
pub(super) mod replies;
#[cfg(feature = "tls")]
pub(super) mod tls;
pub(super) mod url;
mod wire;

use address::{Address, Host};
use breaker::{Begun, Breaker, Verdict};
use call::Call;
use commands::{OneOfMany, key_of, write_count, write_word};
use confirmation::{Confirmation, marker, marker_for};
use endpoint::{Endpoint, encrypted};
use url::{Login, Parts, RedisUrlError};
use wire::{Multiplexer, values, without_password};

pub(super) use commands::{Command, command, long_command};
pub(super) use fields::{Field, Fields};
pub(super) use hash_slot::{SLOTS, slot_of};
pub(super) use link::{Calls, Link};
pub(super) use replies::{UNKNOWN, array, bytes, integer, is_done, text, time_ms};
