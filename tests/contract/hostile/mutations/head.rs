use super::super::dice::Dice;
use super::super::request::Request;

const METHODS: [&str; 18] = [
    "TRACE", "CONNECT", "OPTIONS", "HEAD", "GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND",
    "PURGE", "get", "G@T", "PRI", "GET\t", "", "\u{e9}", "M-SEARCH",
];

const ENDS: [&[u8]; 12] = [
    b"HTTP/1.0\r\n",
    b"HTTP/0.9\r\n",
    b"HTTP/1.2\r\n",
    b"HTTP/2.0\r\n",
    b"HTTP/9.9\r\n",
    b"http/1.1\r\n",
    b"HTTX/1.1\r\n",
    b"HTTP/1.1\n",
    b"HTTP/1.1 \r\n",
    b"\r\n",
    b"HTTP/1.\r\n",
    b"HTTP/1.1\r\r\n",
];

/// Header lines that could confuse the server or its libraries.
const LINES: [&[u8]; 73] = [
    b"host: example.com",
    b"host:",
    b"host: a b",
    b"host: [::1]:99999",
    b"host: evil\x00.com",
    b"host: \xff",
    b"connection: close",
    b"connection: keep-alive",
    b"connection: upgrade",
    b"connection: close, keep-alive",
    b"connection: ",
    b"connection: host, content-length",
    b"upgrade: websocket",
    b"upgrade: web socket",
    b"upgrade: h2c",
    b"upgrade: ",
    b"http2-settings: AAMAAABkAAQAAP__",
    b"expect: 100-continue",
    b"expect: nonsense",
    b"te: trailers",
    b"accept: text/event-stream",
    b"accept: nothing/at-all",
    b"accept: */*;q=0",
    b"accept: ;;;,,,",
    b"accept: application/json;q=99999999999999999999",
    b"accept-encoding: gzip",
    b"accept-encoding: br;q=x",
    b"accept-encoding: identity;q=0, *;q=0",
    b"content-encoding: gzip",
    b"content-encoding: identity",
    b"content-type: text/plain",
    b"content-type: application/json; charset=utf-16",
    b"content-type: ",
    b"content-type: application/merge-patch+json",
    b"content-type: application/json;;;",
    b"content-type: \xe9",
    b"content-type: multipart/form-data",
    b"if-match: *",
    b"if-match: \"1\", \"2\"",
    b"if-match: W/\"1\"",
    b"if-match: \"99999999999999999999\"",
    b"if-match: \"",
    b"if-none-match: *",
    b"if-none-match: \"1\"",
    b"if-none-match: W/\"1-0123456789abcdef\", *",
    b"if-modified-since: yesterday",
    b"range: bytes=0-0,5-1,-",
    b"idempotency-key: ",
    b"idempotency-key: a b",
    b"idempotency-key: \xe9",
    b"last-event-id: x",
    b"last-event-id: 0",
    b"last-event-id: \xff",
    b"x-forwarded-for: 1.2.3.4, \xff, ::1",
    b"x-forwarded-for: ,,,",
    b"x-forwarded-proto: https",
    b"forwarded: for=\"[",
    b"origin: null",
    b"origin: https://app.example.com",
    b"origin: \xff",
    b"sec-fetch-site: cross-site",
    b"access-control-request-method: \x01",
    b"access-control-request-headers: x,,y",
    b"cookie: atid",
    b"cookie: ;=;\x01",
    b"authorization: ",
    b"traceparent: 00-0-0-0",
    b"x-modelrelay-request-id: \t",
    b"x-http-method-override: DELETE",
    b"sec-websocket-key: x",
    b"mcp-protocol-version: 1999-01-01",
    b"mcp-session-id: \x80",
    b"x-turn-token: \"",
];

const BROKEN: [&[u8]; 12] = [
    b"no-colon",
    b": no name",
    b"a b: c",
    b"x : y",
    b"x\x00: y",
    b"\xff: y",
    b"x: \x00",
    b"x: a\rb",
    b"x: a\nb: c",
    b"x: a\r\n folded: b",
    b"x: a\r\n\tfolded",
    b"\x01\x02\x03",
];

pub(in super::super) fn bytes(request: &Request, dice: &mut Dice) -> Vec<u8> {
    let mut request = request.clone();
    let mut lines = request.lines();
    let mut version: &[u8] = b"HTTP/1.1\r\n";
    let index = dice.below(lines.len() + 1);
    let line = |bytes: &[u8]| [bytes, b"\r\n"].concat();
    let mut before: &[u8] = b"";
    match dice.below(20) {
        0..7 => {
            for _ in 0..=dice.below(3) {
                lines.insert(index, line(dice.bytes(&LINES)));
            }
        }
        7 => lines.insert(index, line(dice.bytes(&BROKEN))),
        8 => version = dice.bytes(&ENDS),
        9 => request.method = dice.word(&METHODS).into(),
        10 => request.method = "M".repeat(dice.length().min(20_000)),
        11 => lines.insert(index, dice.pick(&lines).clone()),
        12 => drop(lines.remove(index.min(lines.len() - 1))),
        13 => {
            let value = [
                b"x-long: ",
                b"v".repeat(dice.length().min(200_000)).as_slice(),
            ]
            .concat();
            lines.insert(index, line(&value));
        }
        14 => {
            let count = [60, 65, 96, 97, 200, 3_000][dice.below(6)];
            lines.extend((0..count).map(|number| format!("x-{number}: v\r\n").into_bytes()));
        }
        15 => {
            let target = [b"http://localhost:80".as_slice(), &request.path].concat();
            request.path = target;
        }
        16 => {
            const TARGETS: [&[u8]; 6] = [b"localhost:443", b"*", b"", b"x", b"http://", b"//x/y"];
            request.path = dice.bytes(&TARGETS).into();
        }
        17 => before = [b"\r\n".as_slice(), b"\r\n\r\n", b"\n", b" ", b"\x00"][dice.below(5)],
        18 => {
            for line in &mut lines {
                line.truncate(line.len() - 2);
                line.push(b'\n');
            }
        }
        _ => {
            let name = b"n".repeat(dice.length().min(100_000));
            lines.insert(index, [name.as_slice(), b": v\r\n"].concat());
        }
    }
    let rest = request.bytes_of(version, &lines.concat(), request.payload());
    [before, &rest].concat()
}
