//! The OpenAPI document, and a page to read it with.

use std::sync::OnceLock;

use actix_web::HttpResponse;
use actix_web::web::{self, ServiceConfig};
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    Components, ContentBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder, Schema,
};
use utoipa::{Modify, OpenApi as _};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::answer::negotiation::EVENT_STREAM;
use super::methods::read_only;
use super::schemas::Problem;
use super::{admin, events, kv, scopes, threads, tools};

const CURRENT: &str = "/v1/threads/current";
const BY_ID: &str = "/v1/threads/{id}";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "threadkeep",
        description = "Conversation state as a service. `/v1/threads/current` is the caller's own \
            thread, found by the signed id in the header `x-thread-id` or in a cookie; without \
            either, the answer carries a new one. `/v1/threads/{id}` names any thread, with an api \
            key or the signed id of that same thread. Values come back exactly as they were sent."
    ),
    paths(
        threads::lifecycle::create_thread,
        threads::lifecycle::get_thread,
        threads::lifecycle::patch_thread,
        threads::lifecycle::delete_thread,
        threads::state::get_state,
        threads::writes::put_state,
        threads::writes::patch_state,
        threads::writes::delete_state,
        threads::state::get_value,
        threads::writes::put_value,
        threads::writes::delete_value,
        threads::writes::push_value,
        threads::writes::increment_value,
        threads::state::get_keys,
        threads::history::append_history,
        threads::history::get_history,
        threads::history::get_final_history,
        events::of_thread::get_thread_events,
        events::all::get_events,
        threads::archives::list_archives,
        threads::archives::get_archive,
        threads::archives::restore_archive,
        kv::namespaces::list_namespaces,
        kv::namespaces::list_entries,
        kv::namespaces::put_namespace,
        kv::namespaces::delete_namespace,
        kv::entries::get_entry,
        kv::entries::put_entry,
        kv::entries::delete_entry,
        admin::webhooks::create_webhook,
        admin::webhooks::list_webhooks,
        admin::webhooks::get_webhook,
        admin::webhooks::patch_webhook,
        admin::webhooks::delete_webhook,
        admin::webhooks::get_failed,
        admin::webhooks::replay_webhook,
        tools::single::list_tools,
        tools::single::call_tool,
        tools::calls::call_tools,
        tools::mcp_urls::create_mcp_url,
        scopes::values::get_values,
        scopes::values::set_values,
        scopes::values::delete_key,
        scopes::values::list_keys,
        scopes::values::increment_key,
        scopes::tasks::get_tasks,
        scopes::tasks::set_tasks,
        scopes::tasks::update_task,
        scopes::lifecycle::describe_scope,
        scopes::lifecycle::clear_scope,
        scopes::lifecycle::end_scope,
        admin::probes::healthz,
        admin::probes::readyz,
    ),
    components(schemas(Problem)),
    modifiers(
        &Identification, &Unbounded, &Overload, &ByIdPaths, &OwnThreads, &Metrics, &HeadMethods
    ),
    tags(
        (name = "threads", description = "Threads as a whole"),
        (name = "state", description = "The state of a thread"),
        (name = "history", description = "A list of each thread that is only added to"),
        (name = "events", description = "What happens to threads, as it happens"),
        (name = "archives", description = "What is left of threads that are over"),
        (name = "kv", description = "Data of applications that outlives threads: entries in namespaces"),
        (name = "webhooks", description = "Where events go by themselves"),
        (name = "tools", description = "Tools that models call to keep state"),
        (name = "scopes", description = "What tools, sessions and personalities keep: keys and tasks. Without an api key a \
            caller opens the scope of its own thread alone"),
        (name = "around", description = "Operation of the service"),
    ),
)]
struct Document;

/// The document as JSON text.
#[must_use]
pub fn openapi_json() -> &'static str {
    static JSON: OnceLock<String> = OnceLock::new();
    JSON.get_or_init(|| {
        let mut json = Document::openapi()
            .to_pretty_json()
            .expect("a document of text and numbers serializes");
        json.push('\n');
        json
    })
}

/// Adds the document, and the page at `/docs`, whose parts are all served from here.
pub(super) fn routes(config: &mut ServiceConfig) {
    let page = Config::from("/openapi.json").validator_url("none");
    config
        .service(read_only("/openapi.json", document))
        .service(web::redirect("/docs", "/docs/"))
        .route("/docs/", web::head().to(HttpResponse::Ok))
        .service(SwaggerUi::new("/docs/{_:.*}").config(page));
}

async fn document() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(openapi_json())
}

/// How a request says who is asking.
struct Identification;

impl Modify for Identification {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_with(Components::new);
        let header = ApiKey::Header(ApiKeyValue::with_description(
            "x-thread-id",
            "`<id>;<signature>`",
        ));
        let cookie = ApiKey::Cookie(ApiKeyValue::with_description(
            "atid",
            "`<id>.<signature>`, percent-encoded",
        ));
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("thread_id", SecurityScheme::ApiKey(header));
        components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
        components.add_security_scheme("api_key", SecurityScheme::Http(key));
    }
}

/// Parts of an array may be asked for by any number: one past 64 bits is as good as no bound.
struct Unbounded;

impl Modify for Unbounded {
    fn modify(&self, document: &mut OpenApi) {
        let values = |path: &str| path.starts_with("/v1/threads/current/state/{key}");
        let paths = &mut document.paths.paths;
        for (_, item) in paths.iter_mut().filter(|(path, _)| values(path)) {
            for_each(item, |operation| {
                for parameter in operation.parameters.iter_mut().flatten() {
                    unbind(parameter);
                }
            });
        }
    }
}

fn unbind(parameter: &mut RefOr<Parameter>) {
    if let RefOr::T(parameter) = parameter
        && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
    {
        schema.format = None;
    }
}

/// Every path of the caller's own thread exists for a thread by its plain id too.
struct ByIdPaths;

impl Modify for ByIdPaths {
    fn modify(&self, document: &mut OpenApi) {
        let by_id: Vec<_> = document
            .paths
            .paths
            .iter()
            .filter_map(|(path, item)| {
                let rest = path.strip_prefix(CURRENT)?;
                Some((format!("{BY_ID}{rest}"), named(item.clone())))
            })
            .collect();
        for (path, item) in &mut document.paths.paths {
            if path.starts_with(CURRENT) {
                for_each(item, |operation| {
                    require(operation, &["thread_id", "cookie", ""]);
                });
            }
        }
        document.paths.paths.extend(by_id);
    }
}

fn named(mut item: PathItem) -> PathItem {
    for_each(&mut item, |operation| {
        require(operation, &["api_key", "thread_id"]);
        rename(operation, "_by_id");
        let id = ParameterBuilder::new()
            .name("id")
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some("The plain thread id."))
            .schema(Some(
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .pattern(Some("^thrd_[a-zA-Z0-9]{27,59}$")),
            ));
        operation
            .parameters
            .get_or_insert_default()
            .insert(0, RefOr::T(id.build()));
    });
    item
}

/// The page of metrics, which is not part of the API's own room.
struct Metrics;

impl Modify for Metrics {
    fn modify(&self, document: &mut OpenApi) {
        let text = ResponseBuilder::new()
            .description("OpenMetrics text, for Prometheus.")
            .content(
                "application/openmetrics-text",
                ContentBuilder::new().build(),
            );
        let operation = OperationBuilder::new()
            .tag("around")
            .operation_id(Some("metrics"))
            .summary(Some("Metrics"))
            .response("200", text);
        document
            .paths
            .add_path_operation("/metrics", vec![HttpMethod::Get], operation);
    }
}

/// There may be no memory left for a request's body, or for the answer to a read.
struct Overload;

impl Modify for Overload {
    fn modify(&self, document: &mut OpenApi) {
        for item in document.paths.paths.values_mut() {
            let read = item.get.as_mut().filter(|read| may_be_large(read));
            let unavailable = read.and_then(|read| read.responses.responses.get_mut("503"));
            if let Some(RefOr::T(response)) = unavailable {
                response.description +=
                    " Or there is no memory left for the answer (`overloaded`).";
            }
            for_each(item, |operation| {
                let unavailable = operation.responses.responses.get_mut("503");
                if let (Some(_), Some(RefOr::T(response))) = (&operation.request_body, unavailable)
                {
                    response.description +=
                        " Or there is no memory left for the body (`overloaded`).";
                }
            });
        }
    }
}

/// Whose own thread a request is about may be for a token to say.
struct OwnThreads;

impl Modify for OwnThreads {
    fn modify(&self, document: &mut OpenApi) {
        let by_cookie = SecurityRequirement::new("cookie", Vec::<String>::new());
        for item in document.paths.paths.values_mut() {
            for_each(item, |operation| {
                let is_own = operation
                    .security
                    .iter()
                    .flatten()
                    .any(|by| *by == by_cookie);
                let unavailable = operation.responses.responses.get_mut("503");
                if let (true, Some(RefOr::T(response))) = (is_own, unavailable) {
                    response.description += " Or the keys that tokens are verified with have not \
                                             been fetched yet (`identity_unavailable`).";
                }
            });
        }
    }
}

/// Whether it answers with more than a few bytes at a time: probes and streams do not.
fn may_be_large(read: &Operation) -> bool {
    let is_probe = read.tags.iter().flatten().any(|tag| tag == "around");
    let is_stream = |response: &RefOr<Response>| matches!(response, RefOr::T(response) if response.content.contains_key(EVENT_STREAM));
    !is_probe && !read.responses.responses.values().any(is_stream)
}

/// HEAD answers wherever GET does.
struct HeadMethods;

impl Modify for HeadMethods {
    fn modify(&self, document: &mut OpenApi) {
        for item in document.paths.paths.values_mut() {
            let Some(mut head) = item.get.clone() else {
                continue;
            };
            rename(&mut head, "_head");
            for response in head.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    response.content.clear();
                }
            }
            item.head = Some(head);
        }
    }
}

fn for_each(item: &mut PathItem, change: impl Fn(&mut Operation)) {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
        &mut item.head,
    ]
    .into_iter()
    .flatten()
    .for_each(change);
}

fn require(operation: &mut Operation, schemes: &[&str]) {
    let requirement = |scheme: &&str| match *scheme {
        "" => SecurityRequirement::default(),
        scheme => SecurityRequirement::new(scheme, Vec::<String>::new()),
    };
    operation.security = Some(schemes.iter().map(requirement).collect());
}

fn rename(operation: &mut Operation, suffix: &str) {
    if let Some(id) = &mut operation.operation_id {
        id.push_str(suffix);
    }
}
