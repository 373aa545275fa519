use actix_web::http::Method;
use utoipa::Modify;
use utoipa::openapi::extensions::{Extensions, ExtensionsBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::Type;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, ObjectBuilder, OpenApi, Required};

use super::operations;
use crate::request::{is_for_back_ends, right_for};
use threadkeep_identity::Right;

const CURRENT: &str = "/v1/threads/current";
const BY_ID: &str = "/v1/threads/{id}";

/// Adds security schemes to the document. For each operation, adds the security requirements and the right that an API
/// key needs (`x-right`). Also copies each path below `/v1/threads/current` to `/v1/threads/{id}`.
pub(super) struct Callers;

impl Modify for Callers {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_with(Components::new);
        for (name, scheme) in schemes() {
            components.add_security_scheme(name, scheme);
        }
        for (path, item) in &mut document.paths.paths {
            for (_, operation) in operations(item) {
                let names_scope = || {
                    let is_ours = operation.external_docs.is_none();
                    is_ours && operation.request_body.is_some() && is_of_scopes(path)
                };
                if is_for_back_ends(path) {
                    operation.security = Some(any_of(&["api_key"]));
                } else if names_scope() {
                    operation.security = Some(any_of(&["api_key", "thread_id", "cookie", ""]));
                }
            }
        }
        let mut by_id = Vec::new();
        for (path, item) in &mut document.paths.paths {
            let Some(rest) = path.strip_prefix(CURRENT) else {
                continue;
            };
            by_id.push((format!("{BY_ID}{rest}"), with_thread_id(item.clone())));
            for (_, operation) in operations(item) {
                if !takes_key(operation) {
                    operation.security = Some(any_of(&["thread_id", "cookie", ""]));
                }
            }
        }
        document.paths.paths.extend(by_id);
        for (path, item) in &mut document.paths.paths {
            for (method, operation) in operations(item) {
                if takes_key(operation) {
                    let method = Method::from_bytes(method.as_bytes()).unwrap_or_default();
                    operation.extensions = right(&method, path);
                }
            }
        }
    }
}

fn is_of_scopes(path: &str) -> bool {
    right_for(&Method::POST, path) == Some(&Right::Scopes)
}

fn right(method: &Method, path: &str) -> Option<Extensions> {
    let right = match (right_for(method, path)?, path.contains("{namespace}")) {
        (Right::Kv, true) => "kv/{namespace}".to_owned(),
        (right, _) => right.to_string(),
    };
    Some(ExtensionsBuilder::new().add("x-right", right).build())
}

fn takes_key(operation: &Operation) -> bool {
    let key = SecurityRequirement::new("api_key", Vec::<String>::new());
    let schemes = operation.security.as_ref();
    schemes.is_some_and(|schemes| schemes.contains(&key))
}

fn schemes() -> [(&'static str, SecurityScheme); 3] {
    let header = ApiKeyValue::with_description(
        "x-thread-id",
        "The signed id of a thread: `<id>;<signature>`.",
    );
    let cookie = ApiKeyValue::with_description(
        "atid",
        "The signed id of a thread: `<id>.<signature>`, percent-encoded.",
    );
    let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    [
        ("thread_id", SecurityScheme::ApiKey(ApiKey::Header(header))),
        ("cookie", SecurityScheme::ApiKey(ApiKey::Cookie(cookie))),
        ("api_key", SecurityScheme::Http(key)),
    ]
}

fn with_thread_id(mut item: PathItem) -> PathItem {
    for (_, operation) in operations(&mut item) {
        if !takes_key(operation) {
            operation.security = Some(any_of(&["api_key", "thread_id"]));
        }
        if let Some(id) = &mut operation.operation_id {
            id.push_str("_by_id");
        }
        let parameters = operation.parameters.get_or_insert_default();
        parameters.insert(0, thread_id().into());
    }
    item
}

fn thread_id() -> Parameter {
    ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The thread's id, without its signature."))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .pattern(Some("^thrd_[a-zA-Z0-9]{27,59}$")),
        ))
        .build()
}

/// Requires one of `schemes`. An empty name means that no credential is required.
pub(super) fn any_of(schemes: &[&str]) -> Vec<SecurityRequirement> {
    let requirement = |scheme: &&str| match *scheme {
        "" => SecurityRequirement::default(),
        scheme => SecurityRequirement::new(scheme, Vec::<String>::new()),
    };
    schemes.iter().map(requirement).collect()
}
