//! Responses, as `lua/responses/responses.lua` lays them out.

mod replies;
mod store;
