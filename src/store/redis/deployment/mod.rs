//! What the replicas of a deployment share besides threads: leases, rates, records and lists.

mod leases;
mod listings;
mod rates;
mod registry;
