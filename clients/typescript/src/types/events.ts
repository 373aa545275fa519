/** Types of the events that a client returns. */
export type EventType =
  | "thread.created"
  | "thread.updated"
  | "thread.destroyed"
  | "thread.rotated"
  | "history.appended";

interface ThreadEventBase {
  /** Pass this value as `lastEventId` to resume the stream after this event. */
  cursor: string;
  threadId: string;
  time: string;
}

export interface ThreadChangedEvent extends ThreadEventBase {
  type: "thread.created" | "thread.updated";
  version: number;
  /** Distinguishes this thread from earlier and later threads with the same ID. Part of the ETag. */
  life: string;
  /** Changed keys. */
  keys: string[];
  metadataChanged?: boolean;
  /** New values of the changed keys, if requested and small enough. */
  values?: { [key: string]: any };
}

export interface ThreadDestroyedEvent extends ThreadEventBase {
  type: "thread.destroyed";
  version: number;
  data: {
    /** Identifies the ended thread among all threads that had its ID. */
    life: string;
    reason?: string;
    metadata?: { [key: string]: any };
    state?: { [key: string]: any };
    stateUrl?: string;
    historyUrl?: string;
    stateLost?: boolean;
  };
}

export interface ThreadRotatedEvent extends ThreadEventBase {
  type: "thread.rotated";
  newThreadId: string;
}

export interface HistoryAppendedEvent extends ThreadEventBase {
  type: "history.appended";
  firstSeq: number;
  lastSeq: number;
}

/** Events are missing from the stream. Read the thread again. */
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

/** Options for the event stream of a thread. */
export interface EventOptions {
  signal?: AbortSignal | undefined;
  /** Resumes after this cursor. */
  lastEventId?: string | undefined;
  /** Requests the new values of changed keys. */
  values?: boolean | undefined;
  /** Called each time the stream connects, including reconnects. */
  onOpen?: (() => void) | undefined;
  /** Called when the connection is lost. */
  onClose?: (() => void) | undefined;
}
