/** The types of events that a client shows. */
export type EventType =
  | "thread.created"
  | "thread.updated"
  | "thread.destroyed"
  | "thread.rotated"
  | "history.appended";

interface EventOfThread {
  /** Where the stream continues after this event. */
  cursor: string;
  threadId: string;
  time: string;
}

export interface ThreadChangedEvent extends EventOfThread {
  type: "thread.created" | "thread.updated";
  version: number;
  /** The life of the thread, as in its ETag. */
  life: string;
  /** The keys that changed. */
  keys: string[];
  metadataChanged?: boolean;
  /** The new values of the keys, if they were requested and are small enough. */
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

/** Options of a stream of one thread's events. */
export interface EventOptions {
  signal?: AbortSignal | undefined;
  /** Continues after this cursor. */
  lastEventId?: string | undefined;
  /** Asks for the new values of the keys that changed. */
  values?: boolean | undefined;
  /** Called when the stream is connected, also after an interruption. */
  onOpen?: (() => void) | undefined;
  /** Called when the connection is lost. */
  onClose?: (() => void) | undefined;
}
