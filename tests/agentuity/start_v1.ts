// Starts app.ts in the same way as the code that version 1's build tool generates.

import * as runtime from "@agentuity/runtime";
import { websocket } from "hono/bun";

const { logger, tracer, meter } = runtime.register({ processors: [], logLevel: "info" });
runtime.setGlobalLogger(logger);
runtime.setGlobalTracer(tracer);
runtime.createServices(logger, undefined, "http://127.0.0.1");

const app = runtime.createRouter();
runtime.setGlobalRouter(app);
app.use("*", runtime.createBaseMiddleware({ logger, tracer, meter }));
app.use("/api/*", runtime.createCorsMiddleware());
app.use("/api/*", runtime.createOtelMiddleware());
app.use("/api/*", runtime.createAgentMiddleware(""));

await import("./app");
const state = runtime.getAppState();
await runtime.getThreadProvider().initialize(state);
await runtime.getSessionProvider().initialize(state);
for (const { path, router } of runtime.getUserRouter()) app.route(path, router);
await runtime.runAgentSetups(state);

const server = Bun.serve({ fetch: app.fetch, websocket, port: 0, hostname: "127.0.0.1" });
console.log(`listening on ${server.port}`);
