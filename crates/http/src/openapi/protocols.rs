//! Describes the operations of other protocols, such as `OpenAI`'s API. Does not describe bodies and errors, because
//! each protocol has its own documentation.

use utoipa::Modify;
use utoipa::openapi::external_docs::ExternalDocs;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{Content, ObjectBuilder, OpenApi, Required, ResponseBuilder};

use super::callers::any_of;

/// A path, with the method, id and summary of each operation.
type Row = (
    &'static str,
    &'static [(HttpMethod, &'static str, &'static str)],
);

struct Protocol {
    tag: &'static str,
    docs: &'static str,
    description: &'static str,
    credentials: &'static [&'static str],
    error: &'static str,
    paths: &'static [Row],
}

use HttpMethod::{Delete, Get, Post};

static PROTOCOLS: [Protocol; 4] = [
    Protocol {
        tag: "openai",
        docs: "https://platform.openai.com/docs/api-reference/conversations",
        description: "Works as in OpenAI's API. Also available below `/openai/v1`.",
        credentials: &["api_key"],
        error: OPENAI_ERROR,
        paths: &[
            (
                "/v1/conversations",
                &[(Post, "create_conversation", "Create a conversation")],
            ),
            (
                "/v1/conversations/{conversation}",
                &[
                    (Get, "get_conversation", "Retrieve a conversation"),
                    (Post, "update_conversation", "Update a conversation"),
                    (Delete, "delete_conversation", "Delete a conversation"),
                ],
            ),
            (
                "/v1/conversations/{conversation}/items",
                &[
                    (Get, "list_conversation_items", "List items"),
                    (Post, "add_conversation_items", "Add items"),
                ],
            ),
            (
                "/v1/conversations/{conversation}/items/{item}",
                &[
                    (Get, "get_conversation_item", "Retrieve an item"),
                    (Delete, "delete_conversation_item", "Delete an item"),
                ],
            ),
        ],
    },
    Protocol {
        tag: "openai",
        docs: "https://platform.openai.com/docs/api-reference/responses",
        description: "Works as in OpenAI's API. Also available below `/openai/v1`. Requires the setting `models`.",
        credentials: &["api_key"],
        error: OPENAI_ERROR,
        paths: &[
            (
                "/v1/responses",
                &[(Post, "create_response", "Create a model response")],
            ),
            (
                "/v1/responses/compact",
                &[(Post, "compact_response", "Compact a conversation")],
            ),
            (
                "/v1/responses/input_tokens",
                &[(Post, "count_input_tokens", "Count the tokens of an input")],
            ),
            (
                "/v1/responses/{response}",
                &[
                    (Get, "get_response", "Retrieve or resume a response"),
                    (Delete, "delete_response", "Delete a response"),
                ],
            ),
            (
                "/v1/responses/{response}/cancel",
                &[(Post, "cancel_response", "Cancel a response")],
            ),
            (
                "/v1/responses/{response}/input_items",
                &[(Get, "list_input_items", "List the items of an input")],
            ),
        ],
    },
    Protocol {
        tag: "openai",
        docs: "https://platform.openai.com/docs/api-reference/models",
        description: "Works as in OpenAI's API. Also available below `/openai/v1`. Requires the setting `models`.",
        credentials: &["api_key"],
        error: OPENAI_ERROR,
        paths: &[
            ("/v1/models", &[(Get, "list_models", "List models")]),
            (
                "/v1/models/{model}",
                &[(Get, "get_model", "Retrieve a model")],
            ),
        ],
    },
    Protocol {
        tag: "mcp",
        docs: "https://modelcontextprotocol.io/specification",
        description: "Implements the Streamable HTTP transport of the Model Context Protocol, without sessions.",
        credentials: &["api_key", "thread_id"],
        error: "An error. The body contains the reason.",
        paths: &[("/mcp", &[(Post, "mcp", "Send a JSON-RPC message")])],
    },
];

const OPENAI_ERROR: &str = "An error in OpenAI's format: `{\"error\":{...}}`.";

pub(super) struct Protocols;

impl Modify for Protocols {
    fn modify(&self, document: &mut OpenApi) {
        for protocol in &PROTOCOLS {
            for (path, operations) in protocol.paths {
                let mut item = PathItem::default();
                for (method, id, summary) in *operations {
                    let operation = protocol.operation(path, method, id, summary);
                    item.merge_operations(PathItem::new(method.clone(), operation));
                }
                document.paths.paths.insert((*path).to_owned(), item);
            }
        }
    }
}

impl Protocol {
    fn operation(&self, path: &str, method: &HttpMethod, id: &str, summary: &str) -> Operation {
        let object = || Content::new(Some(ObjectBuilder::new().build()));
        let mut done = ResponseBuilder::new()
            .description("The response, in the format of the protocol.")
            .content("application/json", object());
        if matches!(id, "create_response" | "get_response") {
            done = done.content("text/event-stream", Content::default());
        }
        let error = ResponseBuilder::new()
            .description(self.error)
            .content("application/json", object());
        let parameters = path.split('/').filter_map(|segment| {
            let name = segment.strip_prefix('{')?.strip_suffix('}')?;
            let parameter = ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
            Some(parameter.build())
        });
        let mut operation = OperationBuilder::new()
            .tag(self.tag)
            .operation_id(Some(id))
            .summary(Some(summary))
            .description(Some(self.description))
            .parameters(Some(parameters))
            .response("200", done)
            .response("default", error)
            .securities(Some(any_of(self.credentials)))
            .build();
        if matches!(method, Post) && id != "cancel_response" {
            let body = RequestBodyBuilder::new().content("application/json", object());
            operation.request_body = Some(body.build().into());
        }
        operation.external_docs = Some(ExternalDocs::new(self.docs));
        operation
    }
}
