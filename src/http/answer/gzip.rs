//! Answers that are compressed by gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)).

use std::future::{Ready, ready};
use std::io::Write;

use actix_web::http::header::{ACCEPT_ENCODING, AcceptEncoding, Encoding, Header};
use actix_web::web::Bytes;
use actix_web::{Error, FromRequest, HttpRequest, dev};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Whether a client takes gzip, and likes it no less than the text as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptsGzip(pub(crate) bool);

impl FromRequest for AcceptsGzip {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Ok(Self(accepts_gzip(request))))
    }
}

/// The same for a request.
pub(crate) fn accepts_gzip(request: &HttpRequest) -> bool {
    if !request.headers().contains_key(ACCEPT_ENCODING) {
        return false;
    }
    let offered = [Encoding::gzip(), Encoding::identity()];
    let accepted = AcceptEncoding::parse(request).ok();
    let best = accepted.and_then(|accepted| accepted.negotiate(offered.iter()));
    best == Some(Encoding::gzip())
}

/// Compresses bytes.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    let written = encoder.write_all(bytes);
    let finished = written.and_then(|()| encoder.finish());
    let compressed = finished.expect("memory takes all that is written");
    // without the room that was left
    compressed.into_boxed_slice().into()
}
