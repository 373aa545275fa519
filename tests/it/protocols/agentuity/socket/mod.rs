//! `/thread/ws`.

mod admission;
mod bounds;
mod client;
mod endings;
mod life;
mod messages;
mod oddities;
mod order;
#[cfg(feature = "redis")]
mod outage;
mod rates;
#[cfg(feature = "redis")]
mod redis_time;
mod threads;
