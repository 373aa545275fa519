use actix_web::HttpResponseBuilder;
use actix_web::http::header::{ETAG, HeaderName, HeaderValue};

use threadkeep_domain::Stamp;

const LIFE_DIGITS: usize = 16;
/// Maximum length of an entity tag: two quotes, a version of up to 20 digits, a hyphen, and a thread's random life id.
const ETAG_BYTES_MAX: usize = 2 + 20 + 1 + LIFE_DIGITS;

/// Header with the bare version, for clients behind proxies that change entity tags.
pub const THREAD_VERSION: HeaderName = HeaderName::from_static("x-thread-version");

/// Adds the entity tag and version of a thread or entry to a response.
pub fn tag(response: &mut HttpResponseBuilder, stamp: Stamp) {
    response
        .insert_header((ETAG, etag(stamp)))
        .insert_header((THREAD_VERSION, stamp.version));
}

/// Formats `stamp` as a quoted entity tag. Avoids the slower `fmt`, because every response needs an entity tag.
pub(crate) fn etag(stamp: Stamp) -> HeaderValue {
    let mut version = itoa::Buffer::new();
    let version = version.format(stamp.version).as_bytes();
    let mut life = [0; LIFE_DIGITS];
    hex::encode_to_slice(stamp.life.0.to_be_bytes(), &mut life).expect("two digits for each byte");
    let mut text = [0; ETAG_BYTES_MAX];
    let mut length = 0;
    for part in [b"\"", version, b"-", &life, b"\""] {
        text[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    HeaderValue::from_bytes(&text[..length]).expect("digits and hex are visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::Life;

    #[test]
    fn an_entity_tag_is_the_quoted_stamp() {
        for (version, life) in [(0, 0), (1, 0xab), (u64::MAX, u64::MAX)] {
            let life = Life(life);
            let stamp = Stamp { version, life };

            assert_eq!(etag(stamp), format!("\"{stamp}\"").as_str());
        }
    }
}
