use std::fmt;
use std::io::Write;

use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CONTENT_ENCODING, Encoding, Header, HeaderName, VARY,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::answer::ApiResult;
use crate::request::extract;

/// True if the client accepts gzip and does not prefer an uncompressed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptsGzip(pub(crate) bool);

impl AcceptsGzip {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        Ok(Self(accepts_gzip(request)))
    }
}

extract!(AcceptsGzip);

fn accepts_gzip(request: &HttpRequest) -> bool {
    if !request.headers().contains_key(ACCEPT_ENCODING) {
        return false;
    }
    let offered = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    let best = accepted.and_then(|accepted| accepted.negotiate(offered.iter()));
    best == Some(Encoding::gzip())
}

pub const VARY_BY_ENCODING: (HeaderName, &str) = (VARY, "accept-encoding");

pub struct Encoded {
    bytes: Bytes,
    pub is_gzip: bool,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoded")
            .field("is_gzip", &self.is_gzip)
            .finish_non_exhaustive()
    }
}

impl Encoded {
    pub fn choose(request: &HttpRequest, plain: Bytes, compressed: impl FnOnce() -> Bytes) -> Self {
        let is_gzip = accepts_gzip(request);
        let bytes = if is_gzip { compressed() } else { plain };
        Self { bytes, is_gzip }
    }

    pub fn answer(self, mut response: HttpResponseBuilder) -> HttpResponse {
        response.insert_header(VARY_BY_ENCODING);
        if self.is_gzip {
            response.insert_header((CONTENT_ENCODING, "gzip"));
        }
        response.body(self.bytes)
    }
}

/// Length of a gzip header without optional fields (RFC 1952, section 2.3).
const HEADER_BYTES: usize = 10;
const FLAGS_OFFSET: usize = 3;
const EXTRA_FIELD_FLAG: u8 = 4;
const PADDING_ID: &[u8; 2] = b"PA";
const PADDING_MAX: u8 = 255;

/// Adds a random number of padding bytes, 0 to 255, to the gzip header.
///
/// Without padding, the length of a response reveals whether a string occurs twice in the state, because a repeated
/// string compresses better. A malicious site could put guesses into the state, make the user's browser read the state,
/// and measure the length ([BREACH](https://www.breachattack.com/)).
pub(crate) fn padded(gzip: &[u8]) -> Bytes {
    let (header, content) = gzip.split_at(HEADER_BYTES);
    let padding: u8 = rand::random_range(0..=PADDING_MAX);
    let mut padded = Vec::with_capacity(gzip.len() + 6 + usize::from(padding));
    padded.extend_from_slice(header);
    padded[FLAGS_OFFSET] |= EXTRA_FIELD_FLAG;
    padded.extend_from_slice(&(u16::from(padding) + 4).to_le_bytes());
    padded.extend_from_slice(PADDING_ID);
    padded.extend_from_slice(&u16::from(padding).to_le_bytes());
    padded.resize(padded.len() + usize::from(padding), 0);
    padded.extend_from_slice(content);
    padded.into()
}

pub fn gzip(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let result = encoder.write_all(bytes);
    let result = result.and_then(|()| encoder.finish());
    let compressed = result.expect("writing to memory never fails");
    // drops the spare capacity
    compressed.into_boxed_slice().into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn padding_changes_the_length_and_not_the_content() {
        let plain = gzip(b"some text, some text", Compression::fast());
        // the probability that 64 random lengths are all equal is 256^-63
        let lengths: HashSet<_> = (0..64)
            .map(|_| {
                let padded = padded(&plain);
                let mut text = String::new();
                GzDecoder::new(&padded[..])
                    .read_to_string(&mut text)
                    .unwrap();
                assert_eq!(text, "some text, some text");
                assert!((6..=6 + 255).contains(&(padded.len() - plain.len())));
                padded.len()
            })
            .collect();

        assert!(lengths.len() > 1, "{lengths:?}");
    }
}
