mod leases;
mod listings;
mod rates;
mod registry;
