import { type Span, children, member, membersOf } from "../json/text.js";
import { call } from "./request.js";
import type { Archive, Thread } from "./types.js";

/** Parses an object from the service, except its metadata, because parsing would round large numbers in client data. */
function withMetadata<T>(text: string, span: Span): T {
  const object = JSON.parse(text.slice(span.start, span.end)) as T;
  const metadata = member(text, span, "metadata");
  return { ...object, metadata: metadata ? text.slice(metadata.start, metadata.end) : "{}" };
}

export const threadOf = (text: string): Thread => withMetadata<Thread>(text, { start: 0, end: text.length });

export interface Page<T> {
  items: T[];
  next: string | null;
}

function pageOf<T>(text: string, name: string): Page<T> {
  const root = { start: 0, end: text.length };
  const list = member(text, root, name);
  const next = member(text, root, "next_cursor");
  return {
    items: list ? children(text, list).map(({ value }) => withMetadata<T>(text, value)) : [],
    next: next ? (JSON.parse(text.slice(next.start, next.end)) as string | null) : null,
  };
}

export interface ThreadFilter {
  owner: string;
  order: "updated" | "created";
  /** A metadata key, and the text that its value must have. */
  metadata: [string, string] | undefined;
}

export async function listThreads(filter: ThreadFilter, cursor: string | null, signal?: AbortSignal): Promise<Page<Thread>> {
  const { owner, order, metadata } = filter;
  const query: Record<string, string | number | undefined> = { limit: 100, owner, cursor: cursor ?? undefined };
  if (owner) query["order"] = order;
  if (metadata) query[`metadata.${encodeURIComponent(metadata[0])}`] = metadata[1];
  return pageOf<Thread>((await call("/v1/threads", { query, signal })).text, "threads");
}

export async function listArchives(cursor: string | null, since: string | undefined, signal?: AbortSignal): Promise<Page<Archive>> {
  const query = { limit: 1_000, cursor: cursor ?? undefined, since };
  return pageOf<Archive>((await call("/v1/archives", { query, signal })).text, "archives");
}

export interface FullArchive extends Archive {
  state: Map<string, string>;
}

export async function getArchive(id: string, life: string | undefined, signal?: AbortSignal): Promise<FullArchive> {
  const { text } = await call(`/v1/archives/${id}`, { query: { life }, signal });
  const root = { start: 0, end: text.length };
  const state = member(text, root, "state");
  const { state: _, ...rest } = withMetadata<FullArchive>(text, root);
  return { ...rest, state: state ? membersOf(text.slice(state.start, state.end)) : new Map() };
}

export interface HistoryItem {
  seq: number;
  id: string;
  at: string;
  value: string;
}

export interface HistoryPage {
  items: HistoryItem[];
  firstSeq: number;
  nextSeq: number;
  sizeBytes: number;
  limitBytes: number | undefined;
}

export interface HistoryOptions {
  life?: string | undefined;
  peek?: true;
  signal?: AbortSignal;
}

/** Returns the newest items before `before`, oldest first. */
export async function getHistory(
  path: string,
  before: number | undefined,
  limit: number,
  { life, peek, signal }: HistoryOptions = {},
): Promise<HistoryPage> {
  const range = before === undefined ? { tail: limit } : { before, limit, order: "desc" };
  const query = { ...range, life, peek };
  const { text } = await call(path, { query, signal });
  const root = { start: 0, end: text.length };
  const list = member(text, root, "items");
  const items = list
    ? children(text, list).map(({ value: span }) => {
        const value = member(text, span, "value")!;
        const { seq, id, at } = JSON.parse(text.slice(span.start, span.end)) as HistoryItem;
        return { seq, id, at, value: text.slice(value.start, value.end) };
      })
    : [];
  const { first_seq, next_seq, size_bytes, limit_bytes } = JSON.parse(text) as Record<string, number>;
  items.sort((a, b) => a.seq - b.seq);
  return { items, firstSeq: first_seq ?? 0, nextSeq: next_seq ?? 0, sizeBytes: size_bytes ?? 0, limitBytes: limit_bytes };
}
