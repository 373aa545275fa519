import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { KeyedOptions } from "../http/write.js";
import type { CallOptions } from "../types/options.js";
import type { Requests } from "./requests.js";

export interface ToolCalls {
  /** Default: a temporary scope that exists only during the request. */
  scope?: string | undefined;
  /** The `tool_calls` of an OpenAI message. */
  toolCalls?: readonly object[] | undefined;
  /** The `content` of an Anthropic message. */
  content?: readonly object[] | undefined;
  /** Tool calls outside of a message. */
  toolUse?: readonly object[] | undefined;
  /** If true, `run` returns calls to unknown tools in `unknown`. By default, returns error messages for the model. */
  ignoreUnknown?: boolean | undefined;
}

export interface McpUrl {
  url: string;
  scope: string;
  expiresAt: string | null;
}

/** Tools that models call to store state. */
export interface Tools {
  /** Returns the tool definitions for a request to a model. */
  list(format?: "openai" | "anthropic" | "mcp" | "modelrelay", o?: CallOptions): Promise<any[]>;
  /** Calls one tool. If the model made a mistake, `error` explains it. */
  call(
    name: string,
    call?: { arguments?: unknown; scope?: string | undefined },
    o?: KeyedOptions,
  ): Promise<{ result?: any; error?: string | null; warning?: string }>;
  /** Calls the tools in a model's message. Returns the messages to append to the conversation. */
  run(calls: ToolCalls, o?: KeyedOptions): Promise<{ messages: any[]; unknown?: any[] | null; warning?: string }>;
  /** Returns a URL that gives an MCP client access to one scope. */
  mcpUrl(scope: string, o?: CallOptions & { expiresInSeconds?: number | undefined }): Promise<McpUrl>;
}

export const toolsOf = (requests: Requests): Tools => ({
  async list(format, o) {
    return (await requests.get("/v1/tools", o, { format })).tools;
  },

  call: (name, call = {}, o) => requests.keyed("/v1/tools/" + segment(name), call, o),

  run: ({ scope, toolCalls, content, toolUse, ignoreUnknown }, o) =>
    requests.keyed(
      "/v1/tool-calls",
      { scope, tool_calls: toolCalls, content, tool_use: toolUse, ignore_unknown: ignoreUnknown },
      o,
    ),

  async mcpUrl(scope, { expiresInSeconds, ...o } = {}) {
    return camel(await requests.post("/v1/mcp-urls", { scope, expires_in_seconds: expiresInSeconds }, o));
  },
});
