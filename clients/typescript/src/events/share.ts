import { acquire } from "../identity/lock.js";
import { linked, orAbort } from "../http/wait.js";
import { type Connect, follow, type FollowOptions, SILENCE_MS, type Step } from "./follow.js";

const MAX_STEPS = 1_000;

/** Message from the listening tab to the other tabs. A tab sends an empty message to request a status message. */
interface StatusMessage {
  from?: string | undefined;
  to?: string | undefined;
  isOpen: boolean;
  step?: Step | undefined;
}

/**
 * Follows a stream that all tabs of an origin share. The tab that holds the lock listens and forwards steps. When that
 * tab closes, another tab acquires the lock and resumes after the last step that it received.
 */
export async function* share(
  locks: LockManager,
  name: string,
  connect: Connect,
  o: FollowOptions,
): AsyncGenerator<Step, void> {
  const channel = new BroadcastChannel(name);
  const closing = linked(o.signal);
  let steps: Step[] = [];
  let recentCursors: (string | undefined)[] = [];
  let cursor: string | undefined;
  let isOpen = false;
  let listening: Promise<void> | undefined;
  let hasEnded = false;
  let wake = () => {};
  let takeoverTimer: ReturnType<typeof setTimeout>;
  let release = () => {};

  const receive = ({ from, to, step, ...status }: StatusMessage) => {
    if (status.isOpen !== isOpen) {
      isOpen = status.isOpen;
      (isOpen ? o.onOpen : o.onClose)?.();
    }
    if (to === undefined || recentCursors.includes(to)) return;
    const isGap = (cursor !== undefined && from !== cursor) || steps.length >= MAX_STEPS;
    recentCursors = [...recentCursors, (cursor = to)].slice(-100);
    if (isGap) steps = [{ type: "reset", data: "", cursor: to }];
    if (step) steps.push(step);
    wake();
  };
  const post = (message: StatusMessage) => channel.postMessage(message);
  const currentStatus = () => ({ from: cursor, to: cursor, isOpen });
  const listen = async () => {
    const onOpen = () => {
      isOpen = true;
      o.onOpen?.();
      post(currentStatus());
    };
    const onClose = () => {
      receive({ isOpen: false });
      post(currentStatus());
    };
    const onActivity = () => post(currentStatus());
    for await (const step of follow(connect, { ...o, signal: closing.signal, lastEventId: cursor, onOpen, onClose, onActivity })) {
      const message = { from: cursor, to: step.cursor, isOpen: true, step };
      post(message);
      receive(message);
    }
  };
  const startListening = () => {
    clearTimeout(takeoverTimer);
    listening ??= listen().finally(() => {
      hasEnded = true;
      wake();
    });
    listening.catch(() => {});
  };
  // takes over after `SILENCE_MS` without a message, because a browser may suspend the listening tab
  const restartTimer = () => {
    clearTimeout(takeoverTimer);
    if (!listening) takeoverTimer = setTimeout(startListening, SILENCE_MS);
  };
  channel.onmessage = ({ data }: MessageEvent<StatusMessage | undefined>) => {
    if (data) {
      restartTimer();
      receive(data);
    } else if (listening) post(currentStatus());
  };
  channel.postMessage(undefined);
  restartTimer();
  acquire(locks, name, closing.signal).then(
    (unlock) => {
      release = unlock;
      if (closing.signal.aborted) unlock();
      else startListening();
    },
    () => {},
  );
  try {
    for (;;) {
      for (let step; (step = steps.shift()); ) yield step;
      if (hasEnded) return await listening;
      await orAbort(new Promise<void>((resolve) => (wake = resolve)), o.signal);
    }
  } finally {
    clearTimeout(takeoverTimer!);
    closing.abort();
    channel.close();
    release();
  }
}
