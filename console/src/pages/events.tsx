import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/problem.js";
import { listen } from "../api/stream.js";
import { EVENT_TYPES } from "../api/types.js";
import { count, shortId } from "../format.js";
import { membersOf } from "../json/text.js";
import { pretty } from "../json/pretty.js";
import { excerpt, readable } from "../json/visible.js";
import { can } from "../session.js";
import { Copy, ThreadId } from "../ui/copy.js";
import { Dialog } from "../ui/dialog.js";
import { Empty, Failure, Missing } from "../ui/notices.js";
import { Tree } from "../ui/tree.js";
import { VirtualList } from "../ui/virtual-list.js";

/** Maximum number of events in memory, and their maximum total JSON length, because one event may have 256 KiB. */
const EVENTS_MAX = 2_000;
const EVENT_UNITS_MAX = 16 * 1_048_576;
const BATCH_MS = 200;
const PRETTY_MAX = 100_000;

interface ShownEvent {
  number: number;
  id: string;
  type: string;
  time: string;
  subject: string;
  thread: string | undefined;
  detail: string;
  json: string;
}

export function EventsPage() {
  const [types, setTypes] = useState<readonly string[]>([]);
  const [search, setSearch] = useState("");
  const [isPaused, setPaused] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [events, setEvents] = useState<readonly ShownEvent[]>([]);
  const [shown, setShown] = useState<ShownEvent>();
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const isAllowed = can("events");

  useEffect(() => {
    if (!isAllowed) return;
    let waiting: ShownEvent[] = [];
    let number = 0;
    const timer = setInterval(() => {
      if (paused.current || waiting.length === 0) return;
      const fresh = waiting.reverse();
      waiting = [];
      setEvents((before) => bounded([...fresh, ...before]));
    }, BATCH_MS);
    setEvents([]);
    setProblem(undefined);
    const stop = listen("/v1/events", { type: [...types] }, {
      onEvent: ({ type, data }) => {
        if (type === "reset") return;
        waiting.push(read(type, data, number++));
        if (waiting.length > EVENTS_MAX) waiting.shift();
      },
      onState: (state) => setOpen(state === "open"),
      onProblem: setProblem,
    });
    return () => {
      stop();
      clearInterval(timer);
    };
  }, [types, isAllowed]);

  const found = useMemo(() => {
    const term = search.trim().toLowerCase();
    return term ? events.filter(({ subject, json }) => subject.toLowerCase().includes(term) || json.toLowerCase().includes(term)) : events;
  }, [events, search]);

  if (!isAllowed) return <Missing right="events" />;
  const toggle = (type: string) => setTypes(types.includes(type) ? types.filter((other) => other !== type) : [...types, type]);
  return (
    <>
      <header class="page-head">
        <h1>Events</h1>
        <span class={isOpen ? "status on" : "status off"}>{isOpen ? (isPaused ? "paused" : "live") : "not connected"}</span>
      </header>
      <div class="filters">
        <label class="field">
          <span>Find a thread or a text</span>
          <input type="search" data-search value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Continue" : "Pause"}
        </button>
        <button type="button" onClick={() => setEvents([])}>
          Clear
        </button>
      </div>
      <fieldset class="chips">
        <legend>Types (none selected: all)</legend>
        {EVENT_TYPES.map((type) => (
          <label key={type} class="check">
            <input type="checkbox" checked={types.includes(type)} onChange={() => toggle(type)} /> {type}
          </label>
        ))}
      </fieldset>
      {problem && <Failure problem={problem} />}
      <p class="dim">
        {count(found.length)} {found.length === 1 ? "event" : "events"}, newest first
        {events.length === EVENTS_MAX && "; older events were dropped"}
      </p>
      {found.length === 0 && !problem && (
        <Empty title={events.length > 0 ? "No event fits." : "No event has happened since this page was opened."}>
          {events.length === 0 && <p>Events appear when a thread is written, ends or moves. Write to a thread, for example in the playground.</p>}
        </Empty>
      )}
      <VirtualList
        name="Events"
        length={found.length}
        rowHeight={48}
        row={(index, { isActive: _, ...properties }) => {
          const event = found[index]!;
          return (
            <div key={event.number} role="listitem" {...properties} data-index={undefined} class="event-row">
              <button type="button" data-index={index} class="row-button" onClick={() => setShown(event)}>
                <time class="dim" dateTime={event.time} title={event.time}>
                  {event.time.slice(11, 23)}
                </time>
                <span class={`chip type-${event.type.split(".")[1] ?? ""}`}>{event.type}</span>
                <code class="subject">{event.thread ? shortId(event.thread) : excerpt(event.subject, 40)}</code>
                <bdi class="grow ellipsis dim">{event.detail}</bdi>
              </button>
              <Copy text={event.thread ?? event.subject} name={event.thread ? "id" : "subject"} />
            </div>
          );
        }}
      />
      {shown && (
        <Dialog title={shown.type} isWide onClose={() => setShown(undefined)}>
          <div class="actions">
            {shown.thread && <ThreadId id={shown.thread} whole />}
            <Copy text={shown.id} name="event id" label="Copy event id" />
            <Copy text={shown.json} name="event" label="Copy as JSON" />
          </div>
          {shown.json.length <= PRETTY_MAX ? (
            <pre class="whole" dir="ltr" tabIndex={0} aria-label="Event as JSON">
              {readable(pretty(shown.json))}
            </pre>
          ) : (
            <div class="whole" data-scroller>
              <Tree name="Event" values={membersOf(shown.json)} />
            </div>
          )}
        </Dialog>
      )}
    </>
  );
}

function bounded(events: readonly ShownEvent[]): readonly ShownEvent[] {
  let units = 0;
  const end = events.findIndex(({ json }) => (units += json.length) > EVENT_UNITS_MAX);
  return events.slice(0, Math.min(EVENTS_MAX, end < 0 ? EVENTS_MAX : end));
}

function read(type: string, json: string, number: number): ShownEvent {
  const event = JSON.parse(json) as { id: string; time: string; subject: string; data: Record<string, unknown> };
  const { data } = event;
  const parts: string[] = [];
  if (Array.isArray(data["keys"]) && data["keys"].length > 0) parts.push(data["keys"].slice(0, 10).join(", "));
  if (data["metadata_changed"] === true) parts.push("metadata");
  if (data["reason"]) parts.push(String(data["reason"]));
  if (data["new_thread_id"]) parts.push(`to ${shortId(String(data["new_thread_id"]))}`);
  if (data["first_seq"] !== undefined) parts.push(`positions ${String(data["first_seq"])} to ${String(data["last_seq"])}`);
  if (data["version"] !== undefined) parts.push(`version ${String(data["version"])}`);
  return {
    number,
    id: event.id,
    type,
    time: event.time,
    subject: event.subject,
    thread: typeof data["thread_id"] === "string" ? data["thread_id"] : undefined,
    detail: excerpt(parts.join(" · "), 300),
    json,
  };
}
