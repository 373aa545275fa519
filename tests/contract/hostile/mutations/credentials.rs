use super::super::dice::Dice;
use super::super::request::Request;
use super::super::world::{World, bearer, cookie, relay_key, signed};

pub(in super::super) fn mutate(request: Request, world: World<'_>, dice: &mut Dice) -> Request {
    let id = world.thread(dice);
    let base = match dice.one_in(4) {
        true => request,
        false => request.without_credentials(),
    };
    let count = 1 + dice.below(2);
    (0..count).fold(base, |request, _| match dice.below(12) {
        0 => request,
        1 => request.header("x-thread-id", signed(&id)),
        2 => request.header("cookie", cookie(&id)),
        3 => request.header("authorization", bearer()),
        4 => request.header("x-modelrelay-api-key", relay_key()),
        5 => request.header("x-modelrelay-api-key", "mr_sk_unknown"),
        6 => request.header("authorization", wrong_bearer(dice)),
        7 => request.header("x-thread-id", wrong_signature(&id, dice)),
        8 => request.header("cookie", wrong_cookie(&id, dice)),
        9 => request.header("x-thread-id", dice.seed()),
        10 => request.header("x-session-id", "x".repeat(dice.below(400))),
        _ => request.header("x-state-id", "00000000-0000-4000-8000-00000000000g"),
    })
}

fn wrong_bearer(dice: &mut Dice) -> Vec<u8> {
    let good = bearer();
    match dice.below(6) {
        0 => b"Bearer".to_vec(),
        1 => b"Bearer ".to_vec(),
        2 => b"Basic dXNlcjpwYXNzd29yZA==".to_vec(),
        3 => good.to_lowercase().into_bytes(),
        4 => [good.as_bytes(), b"\xff"].concat(),
        _ => format!("Bearer {}", "k".repeat(dice.length().min(20_000))).into_bytes(),
    }
}

fn wrong_signature(id: &str, dice: &mut Dice) -> Vec<u8> {
    let good = signed(id);
    match dice.below(7) {
        0 => id.into(),
        1 => format!("{id};").into_bytes(),
        2 => format!("{good};{good}").into_bytes(),
        3 => good.replace(';', ".").into_bytes(),
        4 => good[..good.len() - 1].into(),
        5 => [good.as_bytes(), b"\x80"].concat(),
        _ => format!("thrd_{};{}", "a".repeat(dice.below(80)), "A".repeat(44)).into_bytes(),
    }
}

fn wrong_cookie(id: &str, dice: &mut Dice) -> Vec<u8> {
    let good = cookie(id);
    match dice.below(6) {
        0 => format!("{good}; {good}").into_bytes(),
        1 => format!("atid={id}.%").into_bytes(),
        2 => format!("atid={id}.%ff%fe%00").into_bytes(),
        3 => b"atid".to_vec(),
        4 => format!("{}{good}", "a=b; ".repeat(dice.below(3_000))).into_bytes(),
        _ => [b"atid=\"", good.as_bytes(), b"\"; \xff=\xfe;;;=;"].concat(),
    }
}
