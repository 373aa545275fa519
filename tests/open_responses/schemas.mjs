// Schemas of the Open Responses specification of 2026-04-24. Objects may have additional members.

import { createRequire } from "node:module";

// `require` uses NODE_PATH, but `import` does not
const { z } = createRequire(import.meta.url)("zod");

const text = z.string();
const integer = z.int();
const nullable = (schema) => schema.nullable();
const typed = (type, members) => z.object({ type: z.literal(type), ...members });
const oneOf = (schemas) => z.discriminatedUnion("type", schemas);

const token = { token: text, logprob: z.number(), bytes: z.array(integer) };
const logprobs = z.array(z.object({ ...token, top_logprobs: z.array(z.object(token)) }));
const annotation = typed("url_citation", { url: text, title: text, start_index: integer, end_index: integer });

const PARTS = [
  typed("input_text", { text }),
  typed("output_text", { text, annotations: z.array(annotation), logprobs: logprobs.optional() }),
  typed("text", { text }),
  typed("summary_text", { text }),
  typed("reasoning_text", { text }),
  typed("refusal", { refusal: text }),
  typed("input_image", { image_url: nullable(text), detail: z.enum(["low", "high", "auto"]) }),
  typed("input_file", { filename: text.optional(), file_url: text.optional() }),
];
const part = oneOf(PARTS);
const messagePart = oneOf([...PARTS, typed("input_video", { video_url: text })]);

const status = z.enum(["in_progress", "completed", "incomplete"]);
const item = oneOf([
  typed("message", {
    id: text,
    status,
    role: z.enum(["user", "assistant", "system", "developer"]),
    content: z.array(messagePart),
    phase: z.enum(["commentary", "final_answer"]).optional(),
  }),
  typed("function_call", { id: text, call_id: text, name: text, arguments: text, status }),
  typed("function_call_output", { id: text, call_id: text, output: z.union([text, z.array(part)]), status }),
  typed("reasoning", {
    id: text,
    summary: z.array(part),
    content: z.array(part).optional(),
    encrypted_content: text.optional(),
  }),
  typed("compaction", { id: text, encrypted_content: text, created_by: text.optional() }),
]);

const usage = z.object({
  input_tokens: integer,
  output_tokens: integer,
  total_tokens: integer,
  input_tokens_details: z.object({ cached_tokens: integer }),
  output_tokens_details: z.object({ reasoning_tokens: integer }),
});
const tool = typed("function", {
  name: text,
  description: nullable(text),
  parameters: nullable(z.record(text, z.unknown())),
  strict: nullable(z.boolean()),
});
const choice = z.enum(["none", "auto", "required"]);
const functionChoice = typed("function", { name: text.optional() });
const format = oneOf([
  typed("text", {}),
  typed("json_object", {}),
  // the specification allows only `null` for `schema`
  typed("json_schema", { name: text, description: nullable(text), schema: z.unknown(), strict: z.boolean() }),
]);

/** `ResponseResource` */
export const response = z.object({
  id: text,
  object: z.literal("response"),
  created_at: integer,
  completed_at: nullable(integer),
  status: text,
  incomplete_details: nullable(z.object({ reason: text })),
  model: text,
  previous_response_id: nullable(text),
  instructions: nullable(text),
  output: z.array(item),
  error: nullable(z.object({ code: text, message: text })),
  tools: z.array(tool),
  tool_choice: z.union([
    choice,
    functionChoice,
    typed("allowed_tools", { tools: z.array(functionChoice), mode: choice }),
  ]),
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format, verbosity: z.enum(["low", "medium", "high"]).optional() }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: integer,
  temperature: z.number(),
  reasoning: nullable(
    z.object({
      effort: nullable(z.enum(["none", "low", "medium", "high", "xhigh"])),
      summary: nullable(z.enum(["concise", "detailed", "auto"])),
    }),
  ),
  usage: nullable(usage),
  max_output_tokens: nullable(integer),
  max_tool_calls: nullable(integer),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: text,
  metadata: z.record(text, text),
  safety_identifier: nullable(text),
  prompt_cache_key: nullable(text),
});

/** `CompactResource` */
export const compaction = z.object({
  id: text,
  object: z.literal("response.compaction"),
  output: z.array(item),
  created_at: integer,
  usage,
});

const ofItem = { item_id: text, output_index: integer };
const ofContent = { ...ofItem, content_index: integer };
const ofSummary = { ...ofItem, summary_index: integer };
const ofOutput = { output_index: integer, item: nullable(item) };
const EVENTS = {
  "response.created": { response },
  "response.queued": { response },
  "response.in_progress": { response },
  "response.completed": { response },
  "response.failed": { response },
  "response.incomplete": { response },
  "response.output_item.added": ofOutput,
  "response.output_item.done": ofOutput,
  "response.content_part.added": { ...ofContent, part },
  "response.content_part.done": { ...ofContent, part },
  "response.output_text.delta": { ...ofContent, delta: text, logprobs: logprobs.optional() },
  "response.output_text.done": { ...ofContent, text, logprobs: logprobs.optional() },
  "response.output_text.annotation.added": {
    ...ofContent,
    annotation_index: integer,
    annotation: nullable(annotation),
  },
  "response.refusal.delta": { ...ofContent, delta: text },
  "response.refusal.done": { ...ofContent, refusal: text },
  "response.reasoning_summary_part.added": { ...ofSummary, part },
  "response.reasoning_summary_part.done": { ...ofSummary, part },
  "response.reasoning_summary_text.delta": { ...ofSummary, delta: text },
  "response.reasoning_summary_text.done": { ...ofSummary, text },
  "response.function_call_arguments.delta": { ...ofItem, delta: text },
  "response.function_call_arguments.done": { ...ofItem, arguments: text },
};
export const event = oneOf(
  Object.entries(EVENTS).map(([type, members]) => typed(type, { sequence_number: integer, ...members })),
);

/** `WebSocketErrorEvent` */
export const socketError = typed("error", {
  status: integer,
  error: z.object({ type: text.optional(), code: text, message: text, param: nullable(text).optional() }),
});

export function checked(schema, value) {
  const { error } = schema.safeParse(value);
  if (error) throw new Error(`${z.prettifyError(error)}\nin ${JSON.stringify(value)}`);
  return value;
}
