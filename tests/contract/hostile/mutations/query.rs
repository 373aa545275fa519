use super::super::dice::Dice;
use super::super::request::Request;

const NAMES: [&str; 24] = [
    "limit",
    "offset",
    "tail",
    "key",
    "cursor",
    "life",
    "after",
    "before",
    "order",
    "since",
    "type",
    "format",
    "max_records",
    "ttl_seconds",
    "last_event_id",
    "prefix",
    "namespace",
    "include",
    "sort",
    "direction",
    "name",
    "scope",
    "sig",
    "unknown",
];

const VALUES: [&[u8]; 34] = [
    b"",
    b"0",
    b"1",
    b"-1",
    b"+1",
    b"1.0",
    b"1e9",
    b"00",
    b"0x10",
    b"1000",
    b"1001",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"99999999999999999999999999",
    b"null",
    b"true",
    b"NaN",
    b"%",
    b"%zz",
    b"%00",
    b"%ff",
    b"%ed%a0%80",
    b"%26",
    b"%3D",
    b"+",
    b"a=b",
    b"0-0",
    b"1700000000000-99999999999999999999",
    b"2026-01-02T03:04:05Z",
    b"9999-12-31T23:59:60Z",
    b"\xff\xfe",
    b"%F0%9F%98%80",
];

pub(in super::super) fn mutate(mut request: Request, dice: &mut Dice) -> Request {
    let query = &mut request.query;
    for _ in 0..=dice.below(3) {
        let name = match query.is_empty() || dice.one_in(2) {
            true => dice.word(&NAMES).as_bytes().to_vec(),
            false => dice.pick(query).0.clone(),
        };
        match dice.below(10) {
            0..6 => query.push((name, Some(dice.bytes(&VALUES).to_vec()))),
            6 => query.push((name, None)),
            7 => query.push((name, Some(b"a".repeat(dice.length().min(40_000))))),
            8 => {
                let value = dice.bytes(&VALUES).to_vec();
                let count = dice.length().min(20_000) / (value.len() + name.len() + 2);
                query.extend((0..count).map(|_| (name.clone(), Some(value.clone()))));
            }
            _ => query.push((dice.bytes(&VALUES).to_vec(), Some(b"1".to_vec()))),
        }
    }
    request
}
