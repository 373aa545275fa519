//! Integration tests of the library, its stores and the program.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue should panic"
)]

mod agentuity_sockets;
mod architecture;
mod cli;
mod clocks;
mod confirmed;
mod conformance;
mod connections;
mod corrupt;
mod costs;
mod crashes;
mod differential;
mod documents;
mod earlier_store;
mod erasure;
mod events;
mod failed_deliveries;
mod faults;
mod full;
mod in_process;
mod killing;
mod library;
mod linearizable;
mod lists;
mod lost_data;
mod memory;
mod memory_limit;
mod scope_lists;
mod slots;
mod thread_memory;
mod versions;

use threadkeep_test_support as support;
