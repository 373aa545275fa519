//! `/thread/ws`.

mod admission;
mod bounds;
mod endings;
mod messages;
mod oddities;
mod order;
mod outage;
mod rates;
mod redis_time;
mod threads;
