use super::super::dice::Dice;
use super::super::request::Request;

const LENGTHS: [&str; 16] = [
    "+5",
    "-1",
    "5,5",
    "5, 6",
    "0x5",
    "",
    " ",
    "5 5",
    "5a",
    "00005",
    "1e1",
    "99999999999999999999999",
    "18446744073709551615",
    "18446744073709551616",
    "2097153",
    "\u{b2}",
];

const ENCODINGS: [&str; 14] = [
    "chunked, gzip",
    "gzip, chunked",
    "gzip",
    "identity",
    "chunked, chunked",
    "xchunked",
    "Chunked",
    "chunked;q=1",
    "\"chunked\"",
    "",
    ",chunked",
    "chunked\u{b}",
    "chunked\r\ntransfer-encoding: identity",
    "trailers",
];

const SIZES: [&str; 14] = [
    "zz",
    "-1",
    "ffffffffffffffff",
    "fffffffffffffffff",
    "0x2",
    " 2",
    "2 ",
    "2;",
    "2;a=b;c=\"d\"",
    "2;\u{e9}",
    "",
    "+2",
    "7fffffff",
    "00000000000000000000002",
];

/// Returns a request with a malformed or wrongly framed body. The client sends nothing after these bytes.
pub(in super::super) fn bytes(request: &Request, dice: &mut Dice) -> Vec<u8> {
    let mut request = request.clone();
    let body = request.body.take().unwrap_or_else(|| b"{\"a\":1}".to_vec());
    let with = |lines: &str, body: &[u8]| {
        let lines = [request.lines().concat().as_slice(), lines.as_bytes()].concat();
        request.bytes_of(b"HTTP/1.1\r\n", &lines, body)
    };
    let length = |length: usize| format!("content-length: {length}\r\n");
    let chunked = "transfer-encoding: chunked\r\n";
    match dice.below(14) {
        0 => with(&length(body.len() + 1 + dice.length()), &body),
        1 => with(&length(dice.below(body.len() + 1)), &body),
        2 => with(
            &format!("{}{}", length(body.len()), length(body.len())),
            &body,
        ),
        3 => with(
            &format!("{}{}", length(body.len()), length(body.len() + 1)),
            &body,
        ),
        4 => with(
            &format!("{}{chunked}", length(body.len())),
            &in_chunks(&body, "", dice),
        ),
        5 => with(&format!("{chunked}{}", length(3)), &body),
        6 => with(
            chunked,
            &in_chunks(&body, dice.word(&["", ";a=b", ";a=\"b\""]), dice),
        ),
        7 => with(chunked, &broken_chunks(&body, dice)),
        8 => with(
            &format!("transfer-encoding: {}\r\n", dice.word(&ENCODINGS)),
            &in_chunks(&body, "", dice),
        ),
        9 => with(
            &format!("content-length: {}\r\n", dice.word(&LENGTHS)),
            &body,
        ),
        10 => with("", &body),
        11 => {
            let whole = with(&length(body.len()), &body);
            let more: [&[u8]; 5] = [
                b"\r\n\r\n",
                b"GET",
                b"\x16\x03\x01",
                b"GET /healthz HTTP/1.1\r\n\r\n",
                &whole,
            ];
            let more = dice.bytes(&more);
            [whole.as_slice(), more].concat()
        }
        12 => with(
            &format!("expect: 100-continue\r\n{}", length(body.len())),
            &body,
        ),
        _ => {
            let mut truncated = with(chunked, &in_chunks(&body, "", dice));
            let cut = 1 + dice.below(body.len() + 5);
            truncated.truncate(truncated.len() - cut);
            truncated
        }
    }
}

fn in_chunks(body: &[u8], extension: &str, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(1 + dice.below(body.len() + 1)) {
        bytes.extend(format!("{:x}{extension}\r\n", chunk.len()).into_bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    let trailer = dice.word(&[
        "",
        "",
        "x-trailer: 1\r\n",
        "content-length: 9\r\n",
        "broken\r\n",
    ]);
    bytes.extend(format!("0\r\n{trailer}\r\n").into_bytes());
    bytes
}

fn broken_chunks(body: &[u8], dice: &mut Dice) -> Vec<u8> {
    let size = dice.word(&SIZES);
    match dice.below(5) {
        0..3 => [size.as_bytes(), b"\r\n{}\r\n0\r\n\r\n"].concat(),
        3 => [b"2\n{}\n0\n\n".as_slice(), body].concat(),
        _ => [b"2\r\n{}XX0\r\n\r\n".as_slice(), body].concat(),
    }
}
