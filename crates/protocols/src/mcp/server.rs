use std::sync::LazyLock;

use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    CustomRequest, CustomResult, DiscoverResult, ErrorData, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool as Definition,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp_actix_web::transport::on_request_extensions;

use super::failure::tool_error;
use super::lifecycle::{Lifecycle, SHARED_TTL_MS, implementation};
use super::{Opened, methods, resources};
use threadkeep_service::rates::RateSubject;
use threadkeep_service::tools::{Call, Format, Outcome, Tool, Toolbox, definitions};

const INSTRUCTIONS: &str = "Keeps state for you between turns: keys with text values, and a task \
    list. All of it belongs to one scope, which the connection has chosen. Write data that you will \
    need later with kv_write and read it with kv_read; kv_list lists the keys. Keys are segments of \
    letters, digits, `_`, `.` and `-`, separated by `/`, such as `user/name`, at most 128 bytes. A \
    value has at most 32768 bytes, all values 131072, and there are at most 256 keys. Track work \
    with tasks_write, which replaces the whole list, and tasks_update, which changes one task; the \
    list has at most 1000 tasks. A rejected call changes nothing and says why. You can also read \
    the keys and tasks as resources.";

static TOOLS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    serde_json::from_value(definitions(Format::Mcp)).expect("the definitions are those of MCP")
});

#[derive(Debug, Clone)]
pub(super) struct Server;

fn opened(context: &RequestContext<RoleServer>) -> Result<Opened, ErrorData> {
    let opened = on_request_extensions(&context.extensions);
    let opened = opened.and_then(|extensions| extensions.get::<Opened>());
    let closed = || ErrorData::internal_error("the request has no scope", None);
    opened.cloned().ok_or_else(closed)
}

/// Rejects a cursor, because the list has only one page.
fn no_cursor(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("there is no such cursor", None)),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(implementation())
            .with_instructions(INSTRUCTIONS)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let result = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(result
            .with_ttl_ms(SHARED_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        no_cursor(request)?;
        let lifecycle = Lifecycle::of(&context);
        let (ttl_ms, cache_scope) = lifecycle.caching();
        Ok(ListToolsResult {
            ttl_ms,
            cache_scope,
            meta: lifecycle.meta(),
            ..ListToolsResult::with_all_items(TOOLS.clone())
        })
    }

    fn get_tool(&self, name: &str) -> Option<Definition> {
        let tool = name.parse::<Tool>().ok()?;
        TOOLS
            .iter()
            .find(|definition| definition.name == tool.as_str())
            .cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let unknown = |_| ErrorData::invalid_params("there is no such tool", None);
        let tool: Tool = request.name.parse().map_err(unknown)?;
        // the arguments in the request are empty, see `message`
        let Opened {
            scope,
            scopes,
            address,
            turn,
            arguments,
        } = opened(&context)?;
        let call = Call {
            turn,
            ..Call::new(tool, arguments.as_deref().unwrap_or_default())
        };
        let tools = Toolbox::new(scopes);
        let call = tools.call_alone(&scope, call);
        let outcome = RateSubject::at(address).around(call).await;
        let lifecycle = Lifecycle::of(&context);
        let outcome = outcome.map_err(|error| tool_error(error, lifecycle.revision()))?;
        let mut result = match outcome {
            Outcome::Result(result) => CallToolResult::structured(result),
            Outcome::Mistake(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        result.meta = lifecycle.meta();
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let Opened { scope, scopes, .. } = opened(&context)?;
        let mut list = resources::list(&scopes, &scope, cursor.as_deref()).await?;
        list.meta = Lifecycle::of(&context).meta();
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        no_cursor(request)?;
        let lifecycle = Lifecycle::of(&context);
        let (ttl_ms, cache_scope) = lifecycle.caching();
        Ok(ListResourceTemplatesResult {
            ttl_ms,
            cache_scope,
            meta: lifecycle.meta(),
            ..resources::templates()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Opened { scope, scopes, .. } = opened(&context)?;
        let mut read = resources::read(&scopes, &scope, &request.uri).await?;
        read.meta = Lifecycle::of(&context).meta();
        Ok(read.into())
    }

    /// Answers requests whose method or parameters the library does not support.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let lifecycle = Lifecycle::of(&context);
        let revision = lifecycle.revision();
        if !methods::is_declared(&request.method, revision) {
            return Err(methods::not_found(revision));
        }
        let text = "the method does not take these params";
        Err(ErrorData::invalid_params(text, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_defined_under_its_name() {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name.as_ref()).collect();

        assert_eq!(names, Tool::ALL.map(Tool::as_str));
    }
}
