use serde_json::json;

use super::case::Case;
use super::catalog::Catalog;
use super::dice::Dice;
use super::request::Request;
use super::schema::any_value;
use super::world::{World, bearer, signed};

pub(super) fn case(catalog: &Catalog, world: World<'_>, dice: &mut Dice) -> Case {
    match dice.below(6) {
        0 => Case::Pipelined(any(catalog, world, dice)),
        1 => Case::Pipelined(same_key(world, dice)),
        2 => Case::Sequential(writes_and_deletion(world, dice)),
        3 => Case::Sequential(restores(world, dice)),
        4 => {
            let one = writes(world, dice);
            let again = one.iter().rev().cloned().collect();
            Case::Concurrent(vec![one, again, writes_and_deletion(world, dice)])
        }
        _ => Case::Concurrent((0..3).map(|_| writes(world, dice)).collect()),
    }
}

fn any(catalog: &Catalog, world: World<'_>, dice: &mut Dice) -> Vec<Request> {
    let count = 2 + dice.below(7);
    let requests = (0..count).map(|_| catalog.any(world, dice));
    requests
        .filter(|request| !request.path.ends_with(b"/events"))
        .collect()
}

fn same_key(world: World<'_>, dice: &mut Dice) -> Vec<Request> {
    let id = world.thread(dice);
    let key = format!("shared-{}", dice.below(3));
    let count = 2 + dice.below(4);
    let write = |_| {
        on(&id, "PUT", "/state/a")
            .json(dice.below(2).to_string())
            .header("idempotency-key", key.clone())
    };
    (0..count).map(write).collect()
}

fn writes_and_deletion(world: World<'_>, dice: &mut Dice) -> Vec<Request> {
    let id = world.thread(dice);
    let mut requests = writes(world, dice);
    requests.insert(dice.below(requests.len() + 1), on(&id, "DELETE", ""));
    requests.push(on(&id, "PUT", "/state/a").json("1"));
    requests.push(on(&id, "DELETE", ""));
    requests.push(on(&id, "GET", "/state"));
    requests
}

fn restores(world: World<'_>, dice: &mut Dice) -> Vec<Request> {
    let id = world.thread(dice);
    let archive = |method: &str, below: &str| {
        let path = format!("/v1/archives/{id}{below}");
        Request::new(method, path).header("authorization", bearer())
    };
    let mut requests = vec![
        on(&id, "PATCH", "").json(json!({"metadata": any_value(dice, 2)}).to_string()),
        on(&id, "DELETE", ""),
        archive("GET", ""),
        archive("POST", "/restore"),
        archive("POST", "/restore"),
        on(&id, "GET", "/state"),
        archive("GET", "/history"),
    ];
    if dice.one_in(2) {
        requests.swap(1, 3);
    }
    requests
}

fn writes(world: World<'_>, dice: &mut Dice) -> Vec<Request> {
    let id = world.thread(dice);
    let count = 1 + dice.below(5);
    let write = |_| {
        let value = any_value(dice, 2).to_string();
        let request = match dice.below(8) {
            0 => on(&id, "POST", "/state/list/push")
                .json(value)
                .parameter("max_records", "3"),
            1 => on(&id, "POST", "/state/counter/increment")
                .json(json!({"by": i64::MAX}).to_string()),
            2 => {
                let patch = json!({"o": {"p": {"q": any_value(dice, 2)}}, "list": null});
                let mut request = on(&id, "PATCH", "/state");
                request.body = Some(patch.to_string().into_bytes());
                request.header("content-type", "application/merge-patch+json")
            }
            3 => on(&id, "PATCH", "/state").json(
                json!({"operations": [{"op": "clear"},
                {"op": "push", "key": "list", "value": 1}, {"op": "increment", "key": "list"}]})
                .to_string(),
            ),
            4 => on(&id, "POST", "/history").json(format!(
                "{{\"id\":\"{}\",\"value\":{value}}}",
                dice.below(3)
            )),
            5 => on(&id, "DELETE", "/state/a"),
            6 => on(&id, "PUT", "/state").json(format!("{{\"o\":{value},\"list\":[{value}]}}")),
            _ => on(&id, "PUT", "/state/o").json(value),
        };
        match dice.below(4) {
            0 => request.header("if-match", format!("\"{}\"", dice.below(4))),
            1 => request.header("if-match", "\"1-0123456789abcdef\""),
            _ => request,
        }
    };
    (0..count).map(write).collect()
}

fn on(id: &str, method: &str, below: &str) -> Request {
    Request::new(method, format!("/v1/threads/current{below}")).header("x-thread-id", signed(id))
}
