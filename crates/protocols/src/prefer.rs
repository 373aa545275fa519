//! Reads the client's preference to wait (RFC 7240).

use std::time::Duration;

use actix_web::http::header::{HeaderMap, HeaderName};

const PREFER: HeaderName = HeaderName::from_static("prefer");
const WAIT_MAX_SECONDS: u64 = 60;

/// Returns how long the caller waits for a turn (the exclusive lease of a thread) that another client holds. This is 1
/// to 60 seconds from the header `Prefer: wait=N`, or 0 without the header.
pub(super) fn wait(headers: &HeaderMap) -> Duration {
    let values = headers.get_all(PREFER);
    let texts = values.filter_map(|value| value.to_str().ok());
    let wait = texts
        .flat_map(|text| text.split([',', ';']))
        .find_map(|preference| {
            let (name, seconds) = preference.split_once('=')?;
            let is_wait = name.trim().eq_ignore_ascii_case("wait");
            is_wait.then(|| seconds.trim().parse().ok())?
        });
    Duration::from_secs(wait.unwrap_or(0).min(WAIT_MAX_SECONDS))
}
