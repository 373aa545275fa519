use actix_web::http::header::{COOKIE, HeaderMap, HeaderValue};
use percent_encoding::percent_decode;

use super::super::{Cookie, CookieSettings, Source};
use threadkeep_domain::{KeyRing, SigningKey, ThreadId};
use threadkeep_fuzzing::{Bound, fuzz};

/// Time limit per byte of input. The limit is high, because even a few bytes can require a signature check with every
/// key in the ring, which takes hundreds of hash rounds.
const VERIFY: Bound = Bound {
    nanos: 20_000,
    ..Bound::LINEAR
};

#[test]
fn a_cookie_is_accepted_if_and_only_if_it_has_the_signature_of_its_id() {
    let keys = ["agentuity", "older"].map(|name| SigningKey::new(name, name.as_bytes()));
    let old = KeyRing::new(vec![keys[1].clone()]).unwrap();
    let ring = KeyRing::new(keys.into()).unwrap();
    let cookie = Cookie::new(CookieSettings::default());
    fuzz("cookies", |input| {
        let lines = input.bytes().split(|byte| *byte == b'\n');
        let mut headers = HeaderMap::new();
        for value in lines.filter_map(|line| HeaderValue::from_bytes(line).ok()) {
            headers.append(COOKIE, value);
        }

        let found = VERIFY.hold(input.bytes().len(), || cookie.find(&headers, &ring));

        let signed = headers
            .get_all(COOKIE)
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
            .filter_map(|pair| pair.trim_ascii().strip_prefix(b"atid="))
            .find_map(|value| signed_by(&[&ring, &old], value));
        let accepted = (found.source == Source::Cookie).then_some(found.id);
        assert_eq!(accepted, signed);
        if let Some(id) = signed {
            check_round_trip(&cookie, &ring, id);
        }
    });
}

fn signed_by(rings: &[&KeyRing], value: &[u8]) -> Option<ThreadId> {
    let value = percent_decode(value).decode_utf8().ok()?;
    let (id, signature) = value.split_once('.')?;
    let id: ThreadId = id.parse().ok()?;
    let is_signature = |ring: &&KeyRing| {
        let base64 = ring.sign(&id);
        signature == base64 || signature.to_ascii_lowercase() == hex_of(&base64)
    };
    rings.iter().any(is_signature).then_some(id)
}

fn hex_of(base64: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64);
    hex::encode(bytes.unwrap())
}

fn check_round_trip(cookie: &Cookie, ring: &KeyRing, id: ThreadId) {
    let signed = HeaderValue::try_from(format!("{id};{}", ring.sign(&id))).unwrap();

    let set = cookie.set(&signed, true);

    assert!(set.len() < 300);
    let pair = set.to_str().unwrap().split(';').next().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(COOKIE, HeaderValue::from_str(pair).unwrap());
    let found = cookie.find(&headers, ring);
    assert_eq!((found.source, found.id), (Source::Cookie, id));
}
