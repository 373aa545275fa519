import type { Json } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";

export interface HistoryItem {
  id: string;
  /** Position of the item, starting at 1. Positions are never reused. */
  seq: number;
  /** Time of the append, in RFC 3339 format. */
  at: string;
  value: any;
  /** Segment that holds the items replaced by this summary. Undefined if the server has discarded those items. */
  segment?: number;
}

/** The original items that a compaction replaced with a summary. */
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
  /** Position of the last item to replace. */
  through: number;
  /** Number of items up to `through` that the summary replaces. */
  count: number;
  /** The summary: 1 to 100 items, but no more than `count`. The server generates missing IDs. */
  items: readonly { id?: string | undefined; value: Json }[];
  /** How long to keep the original items. Default: one week. If 0, they are discarded. */
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

/** Options for writes to a history. Such writes cannot be conditional. */
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
  /** If true, returns original items instead of their summaries, unless the server has discarded the originals. */
  originals?: boolean | undefined;
}

/** An ordered list of values, separate from the state. */
export interface History {
  append(item: NewHistoryItem, o?: HistoryWriteOptions): Promise<AppendedItem>;
  /** Appends up to 1,000 items atomically. */
  appendMany(items: readonly NewHistoryItem[], o?: HistoryWriteOptions): Promise<AppendedItem[]>;
  page(o?: PageOptions): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  /** Iterates over all items, page by page. */
  items(o?: CallOptions & { after?: number | undefined }): AsyncIterableIterator<HistoryItem>;
  /** Returns the newest items, oldest first. */
  latest(count: number, o?: CallOptions): Promise<HistoryItem[]>;
  /** Removes the newest items and returns them, oldest first. */
  take(count?: number, o?: HistoryWriteOptions): Promise<HistoryItem[]>;
  /** Replaces the oldest items with a summary. Throws `VersionMismatchError` (`prefix_changed`) if these changed. */
  compact(compaction: Compaction, o?: HistoryWriteOptions): Promise<{ segment: number; droppedSegments: number }>;
  /** Returns the segments, newest first. Omits segments if the server has discarded their original items. */
  segments(o?: CallOptions): Promise<HistorySegment[]>;
  /** Returns a page of a segment's original items. */
  segment(
    segment: number,
    o?: Omit<PageOptions, "tail" | "originals">,
  ): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  delete(id: string, o?: HistoryWriteOptions): Promise<void>;
  clear(o?: HistoryWriteOptions): Promise<void>;
}
