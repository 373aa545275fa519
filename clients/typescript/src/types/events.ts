/** Event types that a client returns. */
export type EventType =
  | "thread.created"
  | "thread.updated"
  | "thread.destroyed"
  | "thread.rotated"
  | "history.appended";

interface EventOfThread {
  /** Resumes the stream after this event. */
  cursor: string;
  threadId: string;
  time: string;
}

export interface ThreadChangedEvent extends EventOfThread {
  type: "thread.created" | "thread.updated";
  version: number;
  /** Life of the thread, as in its ETag. */
  life: string;
  /** The changed keys. */
  keys: string[];
  metadataChanged?: boolean;
  /** New values of the keys, if requested and small enough. */
  values?: { [key: string]: any };
}

export interface ThreadDestroyedEvent extends EventOfThread {
  type: "thread.destroyed";
  version: number;
  data: {
    /** The life that ended, as in its ETag. */
    life: string;
    reason?: string;
    metadata?: { [key: string]: any };
    state?: { [key: string]: any };
    stateUrl?: string;
    historyUrl?: string;
    stateLost?: boolean;
  };
}

export interface ThreadRotatedEvent extends EventOfThread {
  type: "thread.rotated";
  newThreadId: string;
}

export interface HistoryAppendedEvent extends EventOfThread {
  type: "history.appended";
  firstSeq: number;
  lastSeq: number;
}

/** Events were missed: read the thread. */
export interface ResetEvent {
  type: "reset";
  cursor: string;
}

export type ThreadEvent =
  | ThreadChangedEvent
  | ThreadDestroyedEvent
  | ThreadRotatedEvent
  | HistoryAppendedEvent
  | ResetEvent;

/** Options of the event stream of one thread. */
export interface EventOptions {
  signal?: AbortSignal | undefined;
  /** Resumes after this cursor. */
  lastEventId?: string | undefined;
  /** Requests the new values of changed keys. */
  values?: boolean | undefined;
  /** Called when the stream connects, including after an interruption. */
  onOpen?: (() => void) | undefined;
  /** Called when the connection is lost. */
  onClose?: (() => void) | undefined;
}
