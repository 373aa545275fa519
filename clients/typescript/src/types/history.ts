import type { Json } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";

export interface HistoryItem {
  id: string;
  /** Position of the item, from 1. Positions are never reused. */
  seq: number;
  /** Time of the append, in RFC 3339. */
  at: string;
  value: any;
  /** For a summary, the segment with its originals, while they are kept. */
  segment?: number;
}

/** Originals that a compaction replaced. */
export interface HistorySegment {
  segment: number;
  firstSeq: number;
  through: number;
  count: number;
  sizeBytes: number;
  items: string[];
  compactedAt: string;
  expiresAt: string;
}

export interface Compaction {
  /** Last position to replace. */
  through: number;
  /** Number of items up to `through` that the summary covers. */
  count: number;
  /** 1 to 100 items, up to `count`. The server generates missing IDs. */
  items: readonly { id?: string | undefined; value: Json }[];
  /** How long to keep the originals. Default: one week. 0 keeps none. */
  keepSeconds?: number | undefined;
}

export interface NewHistoryItem {
  id: string;
  value: Json;
}

export interface AppendedItem {
  id: string;
  seq: number;
  repeated: boolean;
}

/** Options of writes to a history, which are unconditional. */
export type HistoryWriteOptions = Omit<WriteOptions, "ifMatch" | "life">;

export interface PageOptions extends CallOptions {
  /** Returns only items after this position. */
  after?: number | undefined;
  /** Returns only items before this position. */
  before?: number | undefined;
  order?: "asc" | "desc" | undefined;
  limit?: number | undefined;
  /** Returns only the newest items, oldest first. */
  tail?: number | undefined;
  /** Returns originals instead of their summaries, while they are kept. */
  originals?: boolean | undefined;
}

/** A list of values that grows at its end, next to the state. */
export interface History {
  append(item: NewHistoryItem, o?: HistoryWriteOptions): Promise<AppendedItem>;
  /** Appends up to 1,000 items in one step. */
  appendMany(items: readonly NewHistoryItem[], o?: HistoryWriteOptions): Promise<AppendedItem[]>;
  page(o?: PageOptions): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  /** Iterates over all items, page by page. */
  items(o?: CallOptions & { after?: number | undefined }): AsyncIterableIterator<HistoryItem>;
  /** Returns the newest items, oldest first. */
  latest(count: number, o?: CallOptions): Promise<HistoryItem[]>;
  /** Removes the newest items and returns them, oldest first. */
  take(count?: number, o?: HistoryWriteOptions): Promise<HistoryItem[]>;
  /** Replaces the oldest items by a summary. Throws a `VersionMismatchError` with code `prefix_changed` if they changed. */
  compact(compaction: Compaction, o?: HistoryWriteOptions): Promise<{ segment: number; droppedSegments: number }>;
  /** Returns the compactions whose originals are kept, newest first. */
  segments(o?: CallOptions): Promise<HistorySegment[]>;
  /** Returns a page of the originals of a segment. */
  segment(
    segment: number,
    o?: Omit<PageOptions, "tail" | "originals">,
  ): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  delete(id: string, o?: HistoryWriteOptions): Promise<void>;
  clear(o?: HistoryWriteOptions): Promise<void>;
}
