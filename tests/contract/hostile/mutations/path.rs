use super::super::dice::Dice;
use super::super::request::Request;

const PIECES: [&[u8]; 30] = [
    b"%00",
    b"%2f",
    b"%2F..%2F",
    b"%",
    b"%zz",
    b"%f",
    b"%ff%fe",
    b"%c0%af",
    b"%ed%a0%80",
    b"%F0%9F%98%80",
    b"/",
    b"//",
    b"/./",
    b"/../",
    b"..",
    b"%2e%2e",
    b";x=1",
    b"\\",
    b"*",
    b"{id}",
    b"current",
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b" ",
    b"\t",
    b"#fragment",
    b"?",
    b"%0d%0aset-cookie:%20a=b",
    b"\x7f",
];

pub(in super::super) fn mutate(mut request: Request, dice: &mut Dice) -> Request {
    let path = &mut request.path;
    let at = dice.below(path.len() + 1);
    match dice.below(8) {
        0..4 => {
            let piece = dice.bytes(&PIECES);
            path.splice(at..at, piece.iter().copied());
        }
        4 => replace_part(path, dice),
        5 => {
            let piece = dice.bytes(&PIECES);
            let count = dice.length().min(70_000) / piece.len();
            path.splice(at..at, piece.repeat(count));
        }
        6 => *path = encode_all(path),
        _ => path.truncate(at.max(1)),
    }
    request
}

fn replace_part(path: &mut Vec<u8>, dice: &mut Dice) {
    let mut parts: Vec<_> = path
        .split(|byte| *byte == b'/')
        .map(<[u8]>::to_vec)
        .collect();
    let index = dice.below(parts.len());
    parts[index] = match dice.below(5) {
        0 => Vec::new(),
        1 => dice.bytes(&PIECES).to_vec(),
        2 => b"a".repeat(dice.length().min(20_000)),
        3 => b"thrd_0000000000000000000000000000000".to_vec(),
        _ => b"%E6%97%A5".repeat(dice.below(200)),
    };
    *path = parts.join(&b'/');
}

fn encode_all(path: &[u8]) -> Vec<u8> {
    let encoded: String = path
        .iter()
        .skip(1)
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    format!("/{encoded}").into_bytes()
}
