import { Problem, asProblem, problemOf } from "./problem.js";
import { type Call, authHeaders, reportUnreachable, urlOf } from "./request.js";

export interface StreamEvent {
  type: string;
  data: string;
}

export interface Listener {
  onEvent: (event: StreamEvent) => void;
  onState?: (state: "open" | "closed") => void;
  /** Called when the server rejects the stream. The stream then does not reconnect. */
  onProblem?: (problem: Problem) => void;
}

/** Time in ms without data after which a connection is considered dead. The server sends a comment every 15 s. */
const SILENCE_MS = 45_000;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 15_000;
/**
 * Time until a hidden tab closes its stream, because browsers allow only six connections per host for all tabs. When
 * the tab becomes visible again, the stream resumes from its cursor.
 */
const HIDDEN_MS = 5_000;
const HIDDEN = "hidden";
/** Maximum length of an event. Real events are shorter, including those with a state of 256 KiB or 1,000 key names. */
const EVENT_MAX_UNITS = 8 * 1_048_576;

/**
 * Listens to a stream until the returned function is called. Reconnects with the last cursor. Uses `fetch`, because
 * `EventSource` cannot send an API key.
 */
export function listen(path: string, query: Call["query"], listener: Listener): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  let cursor: string | undefined;
  /** True if events may be missing, and the service does not report this with a `reset` event. */
  let mayHaveGap = false;
  const run = async () => {
    for (let failures = 0; !signal.aborted; failures++) {
      await untilVisible(signal);
      if (signal.aborted) return;
      try {
        await connect(urlOf(path, query), cursor, signal, {
          open: () => {
            failures = 0;
            listener.onState?.("open");
            if (mayHaveGap) listener.onEvent({ type: "reset", data: "{}" });
            mayHaveGap = false;
          },
          cursor: (id) => (cursor = id),
          event: (event) => {
            if (!signal.aborted) listener.onEvent(event);
          },
        });
      } catch (error) {
        if (signal.aborted) return;
        const problem = asProblem(error);
        if (problem.code === HIDDEN) {
          listener.onState?.("closed");
          failures = -1;
          continue;
        }
        if (problem.status === 400 && cursor !== undefined) {
          // the service has restarted with a different signing key, and therefore rejects the cursor
          cursor = undefined;
          mayHaveGap = true;
          continue;
        }
        if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) {
          listener.onProblem?.(problem);
          listener.onState?.("closed");
          return;
        }
        if (problem.code === "unreachable") reportUnreachable();
      }
      listener.onState?.("closed");
      await pause(Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** failures), signal);
    }
  };
  void run();
  return () => controller.abort();
}

interface Sink {
  open: () => void;
  cursor: (id: string) => void;
  event: (event: StreamEvent) => void;
}

async function connect(url: string, cursor: string | undefined, outer: AbortSignal, sink: Sink): Promise<void> {
  const controller = new AbortController();
  const signal = AbortSignal.any([outer, controller.signal]);
  let timer = setTimeout(() => controller.abort(), SILENCE_MS);
  let isHidden = false;
  let hiding: ReturnType<typeof setTimeout> | undefined;
  const onVisibility = () => {
    clearTimeout(hiding);
    if (!document.hidden) return;
    hiding = setTimeout(() => {
      isHidden = true;
      controller.abort();
    }, HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", onVisibility);
  try {
    const headers: Record<string, string> = { ...authHeaders(), accept: "text/event-stream" };
    if (cursor) headers["last-event-id"] = cursor;
    const response = await fetch(url, { headers, signal, credentials: "omit", cache: "no-store" });
    if (!response.ok) throw problemOf(response.status, await response.text());
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) throw new Problem(0, "unreachable", "");
    sink.open();
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => controller.abort(), SILENCE_MS);
      rest = dispatch(rest + value, sink);
      if (rest.length > EVENT_MAX_UNITS) throw new Problem(0, "unreachable", "");
    }
  } catch (error) {
    if (isHidden) throw new Problem(0, HIDDEN, "");
    throw error instanceof Problem ? error : new Problem(0, "unreachable", "");
  } finally {
    document.removeEventListener("visibilitychange", onVisibility);
    clearTimeout(hiding);
    clearTimeout(timer);
    controller.abort();
  }
}

/** Passes complete events to `sink`, and returns the incomplete end of `text`. The service ends lines with LF only. */
function dispatch(text: string, sink: Sink): string {
  const blocks = text.split("\n\n");
  const rest = blocks.pop()!;
  for (const block of blocks) {
    let type = "";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const [, name, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (name === "event") type = value ?? "";
      else if (name === "data") data.push(value ?? "");
      else if (name === "id") sink.cursor(value ?? "");
    }
    if (type) sink.event({ type, data: data.join("\n") });
  }
  return rest;
}

async function untilVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted)
    await new Promise<void>((resolve) => {
      const done = new AbortController();
      const wake = () => (done.abort(), resolve());
      document.addEventListener("visibilitychange", wake, { signal: done.signal });
      signal.addEventListener("abort", wake, { signal: done.signal });
    });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
