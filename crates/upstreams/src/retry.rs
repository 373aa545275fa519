use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// Maximum wait that an upstream can request.
const REQUESTED_WAIT_MAX: Duration = Duration::from_secs(30);
/// Maximum backoff, before jitter, if the upstream did not request a wait.
const OWN_WAIT_MAX: Duration = Duration::from_secs(8);

/// Returns how long to wait before the next attempt: the requested wait, up to `REQUESTED_WAIT_MAX`, or an exponential
/// backoff with jitter. `attempt` is the number of retries so far.
pub(super) fn wait(first: Duration, attempt: u32, requested: Option<Duration>) -> Duration {
    if let Some(requested) = requested {
        return requested.min(REQUESTED_WAIT_MAX);
    }
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempt));
    doubled
        .min(OWN_WAIT_MAX)
        .mul_f64(rand::random_range(0.75..1.25))
}

/// Returns how long an upstream asks its clients to wait. A date in the past means no wait.
///
/// Reads `retry-after-ms`, as OpenAI's and Anthropic's clients do, and then `Retry-After` (RFC 9110, section 10.2.3).
pub(super) fn requested_wait(headers: &HeaderMap, now: OffsetDateTime) -> Option<Duration> {
    let get = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = get("retry-after-ms").and_then(seconds) {
        return Some(wait / 1_000);
    }
    let text = get(RETRY_AFTER.as_str())?;
    seconds(text).or_else(|| {
        let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
        Some((date - now).try_into().unwrap_or_default())
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn waits_double_up_to_eight_seconds() {
        let half = Duration::from_millis(500);
        for (attempt, seconds) in [(0, 0.5), (1, 1.0), (2, 2.0), (4, 8.0), (40, 8.0)] {
            let waited = wait(half, attempt, None).as_secs_f64();

            assert!(
                waited >= seconds * 0.75 && waited <= seconds * 1.25,
                "{waited}"
            );
        }
    }

    #[test]
    fn an_upstream_can_ask_for_up_to_thirty_seconds() {
        let asked = |seconds| wait(Duration::ZERO, 0, Some(Duration::from_secs(seconds)));

        assert_eq!(asked(0), Duration::ZERO);
        assert_eq!(asked(30), Duration::from_secs(30));
        assert_eq!(asked(3_600), Duration::from_secs(30));
    }

    #[test]
    fn the_requested_wait_is_read_in_each_form() {
        let now = datetime!(2015-10-21 07:28:00 UTC);
        for (name, text, ms) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:09 GMT", Some(9_000)),
            ("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("retry-after", "-1", None),
            ("retry-after", "inf", None),
            ("retry-after", "nan", None),
            ("retry-after", "soon", None),
            ("retry-after", "", None),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), text.parse().unwrap())]);

            let wait = requested_wait(&headers, now);

            assert_eq!(wait, ms.map(Duration::from_millis), "{text}");
        }
    }
}
