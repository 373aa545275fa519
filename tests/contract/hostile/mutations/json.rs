use serde_json::Value;

use super::super::dice::Dice;
use super::super::request::Request;
use super::super::schema::{LOOPBACK_URL, any_value};
use super::super::world::World;

/// Placeholder for a JSON value that is later replaced with bytes that a [`Value`] cannot represent.
const PLACEHOLDER: &str = "\u{1}placeholder\u{1}";

/// Replaces the URL of a webhook endpoint during a mutation. If a mutation changed a digit of the URL, the server might
/// deliver events to a different machine.
const URL_MARKER: &str = "webhook-URL-marker";

const VALUES: [&[u8]; 64] = [
    b"null",
    b"true",
    b"false",
    b"0",
    b"-0",
    b"1",
    b"-1",
    b"1.0",
    b"0.1",
    b"1e2",
    b"1e400",
    b"-1e400",
    b"1e-400",
    b"2147483648",
    b"4294967296",
    b"9007199254740993",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551615",
    b"18446744073709551616",
    b"123456789012345678901234567890",
    b"31536000",
    b"31536001",
    b"946080001",
    b"00",
    b"01",
    b"1.",
    b".5",
    b"+1",
    b"NaN",
    b"Infinity",
    b"-",
    b"1e",
    b"0x1",
    b"\"\"",
    b"\" \"",
    b"\"\\u0000\"",
    b"\"\\ud800\"",
    b"\"\\udc00\\ud800\"",
    b"\"\\ud83d\\ude00\"",
    b"\"\\x\"",
    b"\"\\u12\"",
    b"\"\xff\xfe\"",
    b"\"\xed\xa0\x80\"",
    b"\"\x00\"",
    b"\"\n\"",
    b"\"\xef\xbb\xbf\"",
    b"{}",
    b"[]",
    b"[null]",
    b"[[]]",
    b"{\"\":0}",
    b"{\"__proto__\":{\"a\":1}}",
    b"{\"$ref\":\"#\"}",
    b"\"thrd_00000000000000000000000000000000\"",
    b"\"session:a\"",
    b"\"thread:\"",
    b"\"state:0\"",
    b"\"2026-02-30T25:61:61Z\"",
    b"\"whsec_AAAA\"",
    b"\"http://[::1]:0/\"",
    b"\"javascript:alert(1)\"",
];

/// Bytes that are inserted at a random position of a document.
const GARBAGE: [&[u8]; 16] = [
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b",",
    b":",
    b"}",
    b"]",
    b"{",
    b"[",
    b"\"",
    b"\\",
    b" \t\r\n",
    b"//",
    b"'",
    b"\xe2\x80\xa8",
    b"{}",
];

/// Nesting depths to try. The server accepts 512 levels.
const DEPTHS: [usize; 10] = [8, 126, 127, 128, 129, 510, 511, 512, 513, 5_000];

const REPEATS_MAX: usize = 20_000;
const REPEATED_BYTES_MAX: usize = 300_000;

pub(in super::super) fn mutate(mut request: Request, world: World<'_>, dice: &mut Dice) -> Request {
    let body = request.body.take().unwrap_or_else(|| b"{}".to_vec());
    let body = replace(&body, LOOPBACK_URL, URL_MARKER);
    let mutated = match serde_json::from_slice::<Value>(&body) {
        Ok(tree) if !dice.one_in(6) => in_tree(tree, world, dice),
        _ => in_text(body, dice),
    };
    request.body = Some(replace(&mutated, URL_MARKER, LOOPBACK_URL));
    request
}

fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut start = 0;
    for at in memchr::memmem::find_iter(bytes, from) {
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(to.as_bytes());
        start = at + from.len();
    }
    out.extend_from_slice(&bytes[start..]);
    out
}

pub(in super::super) fn in_tree(mut tree: Value, world: World<'_>, dice: &mut Dice) -> Vec<u8> {
    let pointers = pointers(&tree);
    let pointer = dice.pick(&pointers);
    let node = tree.pointer_mut(pointer).unwrap();
    let raw = match dice.below(12) {
        0 | 1 => changed_members(node, dice),
        2 => value_elsewhere(&mut tree, pointer, &pointers, dice),
        3 => repeated(node, dice),
        4 => Value::from(world.scope(dice)).to_string().into_bytes(),
        _ => poison(dice),
    };
    if let Some(node) = tree.pointer_mut(pointer) {
        *node = PLACEHOLDER.into();
    }
    let text = tree.to_string();
    let marker = Value::from(PLACEHOLDER).to_string();
    let (before, after) = text.split_once(&marker).unwrap_or((&text, ""));
    [before.as_bytes(), &raw, after.as_bytes()].concat()
}

fn poison(dice: &mut Dice) -> Vec<u8> {
    match dice.below(14) {
        0 => {
            let depth = *dice.pick(&DEPTHS);
            nested(depth, dice)
        }
        1 => format!("\"{}\"", "x".repeat(dice.length())).into_bytes(),
        2 => {
            let element = dice.bytes(&VALUES);
            let count = 1 + dice.length() / 4;
            let elements = vec![element; count.min(100_000)].join(&b',');
            [b"[", elements.as_slice(), b"]"].concat()
        }
        3 => {
            let count = (dice.length() / 8).min(20_000);
            let members: Vec<_> = (0..count)
                .map(|number| format!("\"{number}\":{number}"))
                .collect();
            format!("{{{}}}", members.join(",")).into_bytes()
        }
        4 => any_value(dice, 4).to_string().into_bytes(),
        5 => format!("\"{}\"", "\\u0001".repeat(dice.length() / 6)).into_bytes(),
        6 => "9".repeat(1 + dice.length().min(100_000)).into_bytes(),
        _ => dice.bytes(&VALUES).to_vec(),
    }
}

fn nested(depth: usize, dice: &mut Dice) -> Vec<u8> {
    let (open, close): (&[u8], &[u8]) = match dice.below(3) {
        0 => (b"[", b"]"),
        1 => (b"{\"a\":", b"}"),
        _ => (b"[{\"a\":[1,", b"]}]"),
    };
    let ends = match dice.one_in(4) {
        true => dice.below(depth + 2),
        false => depth,
    };
    [open.repeat(depth), b"1".to_vec(), close.repeat(ends)].concat()
}

fn changed_members(node: &Value, dice: &mut Dice) -> Vec<u8> {
    let mut members = match node {
        Value::Object(members) => members.clone(),
        _ => return poison(dice),
    };
    let names: Vec<String> = members.keys().cloned().collect();
    match dice.below(3) {
        0 if !names.is_empty() => drop(members.remove(dice.pick(&names))),
        1 => {
            let name = dice.word(&[
                "unknown",
                "",
                "constructor",
                "é",
                "a\u{0}b",
                "op",
                "id",
                "ttl_seconds",
            ]);
            members.insert(name.into(), any_value(dice, 2));
        }
        _ => drop(members.insert("n".repeat(dice.length()), Value::Null)),
    }
    Value::from(members).to_string().into_bytes()
}

fn value_elsewhere(
    tree: &mut Value,
    pointer: &str,
    pointers: &[String],
    dice: &mut Dice,
) -> Vec<u8> {
    let from = dice.pick(pointers);
    let other = match pointer.starts_with(from.as_str()) {
        true => Value::Null,
        false => tree.pointer(from).cloned().unwrap_or_default(),
    };
    other.to_string().into_bytes()
}

fn repeated(node: &Value, dice: &mut Dice) -> Vec<u8> {
    let member = match node.as_object().and_then(|members| members.iter().next()) {
        Some((name, value)) => format!("{}:{value}", Value::from(name.as_str())),
        None => "\"a\":1".into(),
    };
    let repeats_max = REPEATS_MAX.min(REPEATED_BYTES_MAX / member.len());
    let members = vec![member; 2 + dice.below(1 + repeats_max)];
    format!("{{{}}}", members.join(",")).into_bytes()
}

fn in_text(mut body: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let at = dice.below(body.len() + 1);
    match dice.below(7) {
        0 => body.truncate(at),
        1 | 2 => body
            .splice(at..at, dice.bytes(&GARBAGE).to_vec())
            .for_each(drop),
        3 if at < body.len() => body[at] ^= 1 << dice.below(8),
        4 => body
            .splice(at..at, b" ".repeat(dice.length()))
            .for_each(drop),
        5 => body.extend(body.clone()),
        _ => body = poison(dice),
    }
    body
}

fn pointers(tree: &Value) -> Vec<String> {
    let mut pointers = vec![String::new()];
    let mut add = |name: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        let below = self::pointers(value);
        pointers.extend(below.into_iter().map(|pointer| format!("/{name}{pointer}")));
    };
    match tree {
        Value::Object(members) => members.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                add(&index.to_string(), value);
            }
        }
        _ => {}
    }
    pointers
}
