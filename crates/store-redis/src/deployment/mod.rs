//! Leases, rates, records and lists, which replicas share besides threads.

mod leases;
mod listings;
mod rates;
mod registry;
