use super::json::Object;
use threadkeep_responses::Parameters;

pub(super) fn with_sampling(body: Object, parameters: &Parameters) -> Object {
    body.given("temperature", parameters.temperature.as_ref())
        .given("top_p", parameters.top_p.as_ref())
        .given("presence_penalty", parameters.presence_penalty.as_ref())
        .given("frequency_penalty", parameters.frequency_penalty.as_ref())
}

pub(super) fn with_service(body: Object, parameters: &Parameters) -> Object {
    body.given("user", parameters.user.as_ref())
        .given("safety_identifier", parameters.safety_identifier.as_ref())
        .given("prompt_cache_key", parameters.prompt_cache_key.as_ref())
        .given("service_tier", parameters.service_tier.as_ref())
}
