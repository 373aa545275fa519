use actix_web::http::Uri;
use actix_web::http::header::{HeaderValue, IF_MATCH, IF_NONE_MATCH};
use actix_web::test::TestRequest;
use actix_web::{FromRequest as _, HttpRequest, dev};

use crate::request::conditions::{ReadConditions, precondition};
use crate::request::decode::decode_parameter;
use crate::request::query::{Keys, Page, Parameters, Part, Query, Window};
use threadkeep_domain::{Life, Stamp};
use threadkeep_fuzzing::{Bound, fuzz};

const STAMP: Stamp = Stamp {
    version: 7,
    life: Life(0x0123_4567_89ab_cdef),
};

#[test]
fn queries_are_parsed_or_rejected() {
    fuzz("queries", |input| {
        let Some(text) = input.text() else { return };
        decodes(text);
        let Ok(uri) = Uri::try_from(format!("/?{text}")) else {
            return;
        };
        let request = TestRequest::default()
            .uri(&uri.to_string())
            .to_http_request();
        let bytes = text.len();
        if let Some(Keys { keys, .. }) = query(&request, bytes) {
            assert!(keys.is_sorted_by(|one, next| one < next), "each key once");
        }
        query::<Part>(&request, bytes);
        query::<Window>(&request, bytes);
        if let Some(page) = query::<Page>(&request, bytes) {
            assert!((1..=1_000).contains(&page.limit()));
        }
    });
}

fn query<P: Parameters>(request: &HttpRequest, bytes: usize) -> Option<P> {
    let read = || Query::<P>::from_request(request, &mut dev::Payload::None).into_inner();
    let read = Bound::LINEAR.hold(bytes, read);
    read.ok().map(|Query(parameters)| parameters)
}

fn decodes(text: &str) {
    let decoded = Bound::LINEAR.hold(text.len(), || decode_parameter(text));
    let plain = !text.contains(['%', '+']);
    match decoded {
        Some(decoded) => assert!(decoded.len() <= text.len() && (!plain || decoded == text)),
        None => assert!(!plain),
    }
}

#[test]
fn conditions_match_only_the_tags_that_they_name() {
    fuzz("conditions", |input| {
        let values = input.bytes().split(|byte| *byte == b'\n');
        let values: Vec<_> = values
            .filter_map(|line| HeaderValue::from_bytes(line).ok())
            .collect();
        let mut request = TestRequest::default();
        for value in &values {
            request = request.append_header((IF_NONE_MATCH, value));
        }
        if let Some(first) = values.first() {
            request = request.append_header((IF_MATCH, first));
        }
        let request = request.to_http_request();

        let required = Bound::LINEAR.hold(input.bytes().len(), || precondition(&request));
        let is_known = Bound::LINEAR.hold(input.bytes().len(), || {
            let read = ReadConditions::from_request(&request, &mut dev::Payload::None);
            read.into_inner().map(|conditions| conditions.check(STAMP))
        });

        let tag = STAMP.to_string();
        if let Ok(Some(required)) = required {
            let text = values[0].to_str().unwrap();
            let members = text.split(',').map(str::trim);
            let strong = members.filter(|member| !member.starts_with("W/"));
            let is_met = strong.map(|member| member.trim_matches('"')).any(|text| {
                // a version may have leading zeros
                let has_tag = text.trim_start_matches('0').eq_ignore_ascii_case(&tag);
                text == "*" || has_tag || text.parse() == Ok(STAMP.version)
            });
            assert_eq!(required.is_met_by(STAMP), is_met);
        }
        if let Ok(Ok(true)) = is_known {
            let names_tag = |value: &HeaderValue| {
                let text = value.to_str().unwrap_or_default();
                text.contains(&tag) || text.contains('*')
            };
            assert!(values.iter().any(names_tag));
        }
    });
}
