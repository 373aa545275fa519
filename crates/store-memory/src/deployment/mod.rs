pub(super) mod leases;
pub(super) mod listings;
pub(super) mod rates;
pub(super) mod registry;
