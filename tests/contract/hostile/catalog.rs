use std::fs;

use serde_json::{Value, json};

use super::dice::Dice;
use super::foreign;
use super::request::Request;
use super::schema::Schemas;
use super::world::{World, bearer, cookie, percent, signed};

/// Each optional parameter or header is sent in one out of this many requests.
const OPTIONAL_ONE_IN: usize = 6;

#[derive(Debug)]
pub(super) struct Catalog {
    document: Value,
    operations: Vec<Operation>,
}

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) name: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// An operation in `openapi.json`.
    Documented { method: String, path: String },
    /// Index in `foreign::NAMES` of an operation of another protocol.
    Foreign(usize),
}

impl Catalog {
    pub(super) fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.json");
        let document: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                if operation.get("externalDocs").is_some() {
                    continue;
                }
                // HEAD is available wherever GET is
                let head = (method == "get").then_some("HEAD");
                for sent_as in [method.to_uppercase().as_str()].into_iter().chain(head) {
                    operations.push(Operation {
                        name: format!("{sent_as} {path}"),
                        kind: Kind::Documented {
                            method: method.clone(),
                            path: path.clone(),
                        },
                    });
                }
            }
        }
        for (index, name) in foreign::NAMES.iter().enumerate() {
            let kind = Kind::Foreign(index);
            operations.push(Operation {
                name: (*name).into(),
                kind,
            });
        }
        Self {
            document,
            operations,
        }
    }

    pub(super) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub(super) fn any(&self, world: World<'_>, dice: &mut Dice) -> Request {
        let operation = dice.pick(&self.operations);
        self.request(operation, world, dice)
    }

    pub(super) fn request(
        &self,
        operation: &Operation,
        world: World<'_>,
        dice: &mut Dice,
    ) -> Request {
        match &operation.kind {
            Kind::Foreign(index) => foreign::request(*index, world, dice),
            Kind::Documented { method, path } => {
                let (sent_as, _) = operation.name.split_once(' ').unwrap();
                let mut request = self.documented(method, path, world, dice);
                request.method = sent_as.into();
                request
            }
        }
    }

    fn documented(&self, method: &str, path: &str, world: World<'_>, dice: &mut Dice) -> Request {
        let operation = &self.document["paths"][path][method];
        let schemas = Schemas::new(&self.document);
        // effects, the records of tool calls, need a turn, and few threads have one
        let own = match path.contains("/effects") && dice.one_in(2) {
            true => world.thread_with_turn(dice),
            false => world.thread(dice),
        };
        let mut request = Request::new(&method.to_uppercase(), "");
        let mut target = path.to_owned();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = schemas.resolved(parameter);
            // `<key>` stands for any name
            let name = &parameter["name"].as_str().unwrap().replace("<key>", "user");
            let location = parameter["in"].as_str().unwrap();
            let lowercase_name = name.to_ascii_lowercase();
            if parameter["required"] != true && !dice.one_in(OPTIONAL_ONE_IN) {
                continue;
            }
            let value = match location {
                "header" if lowercase_name == "x-turn-token" => world.token(&own, dice).into(),
                "path"
                    if parameter["schema"]["pattern"]
                        .as_str()
                        .is_some_and(|p| p.starts_with("^thrd_")) =>
                {
                    own.clone().into()
                }
                _ => schemas.value(&parameter["schema"], &lowercase_name, world, dice),
            };
            match location {
                "path" => target = target.replace(&format!("{{{name}}}"), &percent(&plain(&value))),
                "header" => request = request.header(&lowercase_name, plain(&value)),
                _ if value.is_array() => {
                    for one in value.as_array().unwrap() {
                        request = request.parameter(name, percent(&plain(one)));
                    }
                }
                _ => request = request.parameter(name, percent(&plain(&value))),
            }
        }
        request.path = target.into_bytes();
        let contents = operation["requestBody"]["content"].as_object();
        if let Some(contents) = contents {
            let types: Vec<_> = contents.iter().collect();
            let (media_type, content) = dice.pick(&types);
            request = match media_type.as_str() {
                "application/octet-stream" => {
                    request.body = Some(dice.seed().to_vec());
                    request.header("content-type", "text/plain; charset=utf-8")
                }
                media_type => {
                    let body = schemas.value(&content["schema"], "body", world, dice);
                    request.body = Some(body.to_string().into_bytes());
                    request.header("content-type", media_type)
                }
            };
        }
        let security = &operation["security"];
        let request = match *security == json!([{"api_key": []}]) && path.contains("/current/") {
            // a back end identifies the caller's thread by the thread's signed id
            true => request.header("x-thread-id", signed(&own)),
            false => request,
        };
        with_credentials(request, security, &own, dice)
    }
}

fn with_credentials(request: Request, security: &Value, own: &str, dice: &mut Dice) -> Request {
    let schemes: Vec<&str> = security
        .as_array()
        .into_iter()
        .flatten()
        .map(|scheme| {
            scheme
                .as_object()
                .unwrap()
                .keys()
                .next()
                .map_or("", String::as_str)
        })
        .collect();
    if schemes.is_empty() {
        // the operation needs no credentials, but returns more if an API key is sent
        return match dice.one_in(2) {
            true => request.header("authorization", bearer()),
            false => request,
        };
    }
    let scheme = match schemes.contains(&"api_key") && dice.one_in(2) {
        // prefer the API key, because it grants the most rights
        true => "api_key",
        false => dice.word(&schemes),
    };
    match scheme {
        "api_key" => request.header("authorization", bearer()),
        "thread_id" => request.header("x-thread-id", signed(own)),
        "cookie" => request.header("cookie", cookie(own)),
        _ => request,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
