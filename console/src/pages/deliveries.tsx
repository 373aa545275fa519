import { useState } from "preact/hooks";
import { callJson } from "../api/request.js";
import { type Problem, asProblem } from "../api/problem.js";
import type { FailedEvent, PendingEvent } from "../api/types.js";
import { now } from "../clock.js";
import { count, duration } from "../format.js";
import { visible } from "../json/visible.js";
import { useLoad, usePolled } from "../load.js";
import { announce } from "../ui/announce.js";
import { Copy, ThreadId } from "../ui/copy.js";
import { Failure, Loading } from "../ui/notices.js";
import { Ago } from "../ui/time.js";

export const REFRESH_MS = 3_000;
const ROWS = 20;

const attempts = (number: number) => `${count(number)} ${number === 1 ? "attempt" : "attempts"}`;

function EventId({ id }: { id: string }) {
  return <Copy text={id} name="event id" label="Copy event id" />;
}

interface PendingList {
  pending: PendingEvent[];
  total: number;
}

/** Lists events that an endpoint has not yet accepted, and events that are waiting for an earlier event. */
export function Pending({ id }: { id: string }) {
  const { value, problem, reload } = usePolled(
    (signal) => callJson<PendingList>(`/v1/webhooks/${id}/pending`, { query: { limit: ROWS }, signal }),
    [id],
    REFRESH_MS,
  );
  if (problem) return <Failure problem={problem} onRetry={reload} />;
  if (!value) return <Loading />;
  if (value.total === 0) return <p class="dim">No delivery is pending.</p>;
  return (
    <>
      <p class="warn" role="status">
        <strong>Failing: {count(value.total)} pending.</strong> The server tries them again, in the order of each thread.
      </p>
      <ul class="rows" aria-label="Pending deliveries">
        {value.pending.map((event) => (
          <li key={event.event_id} class="row" data-line tabIndex={-1}>
            <span class="chip">{event.type}</span>
            {event.thread_id && <ThreadId id={event.thread_id} />}
            <span class="grow break">{event.last_error === null ? "" : visible(event.last_error)}</span>
            <span class="dim">
              {event.attempts > 0 && `${attempts(event.attempts)}, `}
              <NextAttempt at={event.next_attempt_at} />
            </span>
            <EventId id={event.event_id} />
          </li>
        ))}
      </ul>
      {value.total > value.pending.length && <p class="dim">and {count(value.total - value.pending.length)} more</p>}
    </>
  );
}

function NextAttempt({ at }: { at: string | null }) {
  if (at === null) return <>waits for an earlier event</>;
  const ms = Date.parse(at) - now.value;
  return <time dateTime={at}>{ms <= 0 ? "next attempt now" : `next attempt in ${duration(ms)}`}</time>;
}

interface FailedList {
  failed: FailedEvent[];
  next_cursor: string | null;
}

/** Lists events that the service stopped trying to deliver after one day. */
export function Failed({ id }: { id: string }) {
  const [more, setMore] = useState<{ failed: FailedEvent[]; next: string | null }>();
  const [problem, setProblem] = useState<Problem>();
  const first = useLoad((signal) => callJson<FailedList>(`/v1/webhooks/${id}/failed`, { signal }), [id]);
  const failed = [...(first.value?.failed ?? []), ...(more?.failed ?? [])];
  const next = more ? more.next : first.value?.next_cursor;
  const read = async () => {
    try {
      const page = await callJson<FailedList>(`/v1/webhooks/${id}/failed`, { query: { cursor: next ?? undefined } });
      setMore({ failed: [...(more?.failed ?? []), ...page.failed], next: page.next_cursor });
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const replay = async (events?: string[]) => {
    try {
      const { replayed } = await callJson<{ replayed: number }>(`/v1/webhooks/${id}/replay`, {
        method: "POST",
        body: JSON.stringify(events ? { events } : {}),
      });
      announce(`${count(replayed)} rescheduled`);
      setMore(undefined);
      first.reload();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const retry = () => {
    setProblem(undefined);
    first.reload();
  };
  if (first.problem ?? problem) return <Failure problem={(first.problem ?? problem)!} onRetry={retry} />;
  if (!first.value) return <Loading />;
  if (failed.length === 0) return <p class="dim">No delivery has failed for good.</p>;
  return (
    <>
      <div class="actions">
        <strong>
          {count(failed.length)}
          {next ? " or more" : ""} failed
        </strong>
        <button type="button" onClick={() => void replay()}>
          Replay all
        </button>
      </div>
      <ul class="rows">
        {failed.map((event) => (
          <li key={event.event_id} class="row" data-line tabIndex={-1}>
            <span class="chip">{event.type}</span>
            {event.thread_id && <ThreadId id={event.thread_id} />}
            <span class="grow break">{visible(event.last_error)}</span>
            <span class="dim">
              {attempts(event.attempts)}, <Ago at={event.time} />
            </span>
            <EventId id={event.event_id} />
            <button type="button" onClick={() => void replay([event.event_id])}>
              Replay
            </button>
          </li>
        ))}
      </ul>
      {next && (
        <button type="button" onClick={read}>
          More
        </button>
      )}
    </>
  );
}
