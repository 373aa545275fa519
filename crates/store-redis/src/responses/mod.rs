//! Responses, as `lua/responses/responses.lua` lays them out.

mod replies;
mod step;
mod store;

pub(super) use step::StepOfResponse;
