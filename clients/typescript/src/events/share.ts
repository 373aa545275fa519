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
  const left = linked(o.signal);
  let steps: Step[] = [];
  let seen: (string | undefined)[] = [];
  let cursor: string | undefined;
  let isOpen = false;
  let listening: Promise<void> | undefined;
  let isOver = false;
  let wake = () => {};
  let takeoverTimer: ReturnType<typeof setTimeout>;
  let release = () => {};

  const take = ({ from, to, step, ...news }: StatusMessage) => {
    if (news.isOpen !== isOpen) {
      isOpen = news.isOpen;
      (isOpen ? o.onOpen : o.onClose)?.();
    }
    if (to === undefined || seen.includes(to)) return;
    const isGap = (cursor !== undefined && from !== cursor) || steps.length >= MAX_STEPS;
    seen = [...seen, (cursor = to)].slice(-100);
    if (isGap) steps = [{ type: "reset", data: "", cursor: to }];
    if (step) steps.push(step);
    wake();
  };
  const post = (news: StatusMessage) => channel.postMessage(news);
  const status = () => ({ from: cursor, to: cursor, isOpen });
  const listen = async () => {
    const onOpen = () => {
      isOpen = true;
      o.onOpen?.();
      post(status());
    };
    const onClose = () => {
      take({ isOpen: false });
      post(status());
    };
    const onActivity = () => post(status());
    for await (const step of follow(connect, { ...o, signal: left.signal, lastEventId: cursor, onOpen, onClose, onActivity })) {
      const news = { from: cursor, to: step.cursor, isOpen: true, step };
      post(news);
      take(news);
    }
  };
  const lead = () => {
    clearTimeout(takeoverTimer);
    listening ??= listen().finally(() => {
      isOver = true;
      wake();
    });
    listening.catch(() => {});
  };
  // takes over after `SILENCE_MS` without a message, because a browser may suspend the listening tab
  const restartTimer = () => {
    clearTimeout(takeoverTimer);
    if (!listening) takeoverTimer = setTimeout(lead, SILENCE_MS);
  };
  channel.onmessage = ({ data }: MessageEvent<StatusMessage | undefined>) => {
    if (data) {
      restartTimer();
      take(data);
    } else if (listening) post(status());
  };
  channel.postMessage(undefined);
  restartTimer();
  acquire(locks, name, left.signal).then(
    (unlock) => {
      release = unlock;
      if (left.signal.aborted) unlock();
      else lead();
    },
    () => {},
  );
  try {
    for (;;) {
      for (let step; (step = steps.shift()); ) yield step;
      if (isOver) return await listening;
      await orAbort(new Promise<void>((resolve) => (wake = resolve)), o.signal);
    }
  } finally {
    clearTimeout(takeoverTimer!);
    left.abort();
    channel.close();
    release();
  }
}
