import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../../api/request.js";
import { type Problem, asProblem } from "../../api/problem.js";
import { returns } from "../../api/request.js";
import { conversations } from "../../chat/conversations.js";
import { now } from "../../clock.js";
import { count, duration } from "../../format.js";
import { hrefOfArchive, hrefOfThread } from "../../ids.js";
import { membersOf } from "../../json/text.js";
import { excerpt, readableExcerpt, visible } from "../../json/visible.js";
import { type Loaded } from "../../load.js";
import { shownPart } from "../../route.js";
import { can } from "../../session.js";
import { announce } from "../../ui/announce.js";
import { Bar } from "../../ui/bar.js";
import { Copy, ThreadId } from "../../ui/copy.js";
import { Empty, Failure, Loading } from "../../ui/notices.js";
import { Tabs } from "../../ui/tabs.js";
import { Ago, Left } from "../../ui/time.js";
import { Tree } from "../../ui/tree.js";
import { ChatTab } from "./chat-tab.js";
import { CheckpointsTab } from "./checkpoints-tab.js";
import { ChangeDialog, DestroyDialog, EditDialog, ForkDialog, PushDialog, RotateDialog } from "./dialogs.js";
import { type HistoryMessages, useHistoryMessages } from "./history-messages.js";
import { HistoryTab } from "./history-tab.js";
import { ScopeTab } from "./scope-tab.js";
import { SetDialog } from "./set-dialog.js";
import { keepTime } from "./time-left.js";
import { SHOWN_MS, ThreadView } from "./view.js";

/** The parts of a page, and their labels. */
const PARTS = new Map([
  ["chat", "Chat"],
  ["state", "State"],
  ["history", "History"],
  ["checkpoints", "Checkpoints"],
  ["scope", "Scope"],
]);
/** Units of an owner before it is folded. */
const OWNER_MAX = 30;

type Open = { kind: "edit"; key: string } | { kind: "set" | "push" | "change" | "fork" | "rotate" | "destroy" };

/** One thread, live. */
export function ThreadPage({ id, part: named }: { id: string; part: string }) {
  const part = PARTS.has(named) ? named : "";
  const view = useMemo(() => new ThreadView(id), [id]);
  useEffect(() => () => view.close(), [view]);
  useEffect(() => keepTime(view), [view]);
  useEffect(() => {
    if (view.phase.value !== "loading") void view.load();
  }, [returns.value]);
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const phase = view.phase.value;
  const thread = view.thread.value;
  const state = view.state.value;
  const chats = conversations(state);
  const isThere = phase !== "loading" && phase !== "absent" && phase !== "failed";
  // decided once, so that a later message does not take the page away from its reader
  const firstTab = useRef<string | undefined>(undefined);
  const history = useHistoryMessages(view, isThere && (part === "chat" || (part === "" && firstTab.current !== "state")));
  if (isThere) firstTab.current ??= tabOf(chats.size > 0, history);
  const tab = part || firstTab.current;
  const label = PARTS.get(tab ?? "") ?? "";
  useEffect(() => {
    shownPart.value = label;
    return () => (shownPart.value = "");
  }, [label]);
  const canWrite = can("threads") && (phase === "live" || phase === "absent");

  return (
    <>
      <header class="page-head">
        <h1 class="with-id">
          Thread <code>{id}</code> <Copy text={id} name="id" />
        </h1>
        <Status view={view} />
      </header>
      {phase === "failed" && <Failure problem={view.problem.value!} onRetry={() => void view.load()} />}
      {phase === "loading" && <Loading />}
      {phase === "absent" && (
        <Empty title="There is no thread with this id.">
          <p>It has ended, or nothing was written to it yet. The page shows it as soon as there is a write.</p>
          <p>
            <a href={hrefOfArchive(id)}>Look for it in the archives</a>
          </p>
        </Empty>
      )}
      {phase === "ended" && (
        <div class="notice" role="alert">
          <p>
            <strong>This thread has ended: {view.reason.value}.</strong> Below is its last state that this page has seen.{" "}
            {view.reason.value !== "erased" && <a href={hrefOfArchive(id)}>Open its archive</a>}
          </p>
        </div>
      )}
      {phase === "moved" && (
        <div class="notice" role="alert">
          <p>
            <strong>This thread has moved to a new id.</strong> <ThreadId id={view.movedTo.value} whole />
          </p>
        </div>
      )}
      {phase !== "failed" && view.problem.value && <Failure problem={view.problem.value} onRetry={() => void view.load()} />}
      {thread && phase !== "absent" && phase !== "loading" && (
        <>
          <dl class="facts">
            <div>
              <dt>Size</dt>
              <dd>
                <Bar value={thread.size_bytes} max={thread.limit_bytes} name="Size of the state" />
              </dd>
            </div>
            <Fact name="Keys">{count(state.size)}</Fact>
            <Fact name="Version">{count(view.version)}</Fact>
            <Fact name="Time left">{phase === "live" ? <Left until={thread.expires_at} /> : "–"}</Fact>
            <Fact name="TTL">{duration(thread.ttl_seconds * 1_000)}</Fact>
            <Fact name="Created">
              <Ago at={thread.created_at} />
            </Fact>
            <Fact name="Changed">
              <Ago at={thread.updated_at} />
            </Fact>
            <Fact name="Owner">
              {thread.owner ? <Owner owner={thread.owner} /> : "–"}
            </Fact>
            <Fact name="Turn">
              <Turn view={view} />
            </Fact>
            <Fact name="Metadata" isWide>
              <Metadata text={thread.metadata} />
            </Fact>
          </dl>
          <div class="actions">
            {canWrite && (
              <>
                <button type="button" onClick={() => setOpen({ kind: "push" })}>
                  Add a message
                </button>
                <button type="button" onClick={() => setOpen({ kind: "set" })}>
                  Set a key
                </button>
                <button type="button" onClick={() => setOpen({ kind: "change" })}>
                  Metadata, TTL, owner
                </button>
                <button type="button" onClick={() => setOpen({ kind: "fork" })}>
                  Fork
                </button>
                <button type="button" onClick={() => setOpen({ kind: "rotate" })}>
                  Rotate
                </button>
              </>
            )}
            {phase === "live" && <Export id={id} />}
            {canWrite && (
              <button type="button" class="danger" onClick={() => setOpen({ kind: "destroy" })}>
                Destroy
              </button>
            )}
          </div>
          <Tabs
            name="Parts of the thread"
            current={tab ?? ""}
            tabs={[...PARTS].map(([part, label]) => [part, label, hrefOfThread(id, part)])}
          />
          <section class="tab">
            {!tab && <Loading />}
            {tab === "chat" && <ChatTab key={id} view={view} chats={chats} history={history.value?.messages} canWrite={canWrite} />}
            {tab === "state" && <StateTab view={view} onEdit={canWrite ? (key) => setOpen({ kind: "edit", key }) : undefined} />}
            {tab === "history" && <HistoryTab view={view} />}
            {tab === "checkpoints" && <CheckpointsTab view={view} canWrite={canWrite} />}
            {tab === "scope" && <ScopeTab view={view} />}
          </section>
        </>
      )}
      {open?.kind === "edit" && <EditDialog view={view} name={open.key} onClose={close} />}
      {open?.kind === "set" && <SetDialog view={view} onClose={close} />}
      {open?.kind === "push" && <PushDialog view={view} onClose={close} />}
      {open?.kind === "change" && <ChangeDialog view={view} onClose={close} />}
      {open?.kind === "fork" && <ForkDialog view={view} onClose={close} />}
      {open?.kind === "rotate" && <RotateDialog view={view} onClose={close} />}
      {open?.kind === "destroy" && <DestroyDialog view={view} onClose={close} />}
    </>
  );
}

/** The part that a thread opens on: its conversation, if it has one. */
function tabOf(hasChats: boolean, history: Loaded<HistoryMessages | undefined>): string | undefined {
  if (hasChats || history.value?.messages) return "chat";
  return history.value || history.problem ? "state" : undefined;
}

function Fact({ name, isWide = false, children }: { name: string; isWide?: boolean; children: ComponentChildren }) {
  return (
    <div class={isWide ? "wide" : ""}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** An owner, whose name may be longer than a page is wide. */
function Owner({ owner }: { owner: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <bdi>{isOpen ? visible(owner) : excerpt(owner, OWNER_MAX)}</bdi>{" "}
      {owner.length > OWNER_MAX && (
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Fold" : "Show all"}
        </button>
      )}
      <Copy text={owner} name="owner" />
    </>
  );
}

function Status({ view }: { view: ThreadView }) {
  if (view.phase.value === "ended" || view.phase.value === "moved") return <span class="status off">{view.phase.value}</span>;
  return view.isListening.value ? <span class="status on">live</span> : <span class="status off">not connected</span>;
}

function StateTab({ view, onEdit }: { view: ThreadView; onEdit: ((key: string) => void) | undefined }) {
  const [search, setSearch] = useState("");
  const state = view.state.value;
  const found = useMemo(
    () => (search ? new Map([...state].filter(([key]) => key.toLowerCase().includes(search.toLowerCase()))) : state),
    [state, search],
  );
  const changes = view.changes.value;
  // reads the clock only while there is a highlight to end
  const fresh = changes.size === 0 ? changes : new Map([...changes].filter(([, { at }]) => Math.max(now.value, Date.now()) - at < SHOWN_MS));
  if (state.size === 0)
    return (
      <Empty title="The state is empty.">
        <p>Set a key or add a message, here or through the API. It appears at once.</p>
      </Empty>
    );
  return (
    <>
      <label class="field">
        <span>Find a key</span>
        <input type="search" data-search value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      {found.size === 0 && <p class="dim">No key contains this text.</p>}
      <Tree name="State" values={found} changes={fresh} onEdit={onEdit} />
    </>
  );
}

function Metadata({ text }: { text: string }) {
  const members = membersOf(text);
  if (members.size === 0) return <span>–</span>;
  return (
    <span class="chips">
      {[...members].slice(0, 20).map(([key, value]) => (
        <bdi key={key} class="chip" title={readableExcerpt(value, 2_000)}>
          {excerpt(key, 40)}: {readableExcerpt(value, 80)}
        </bdi>
      ))}
      {members.size > 20 && <span class="dim">and {members.size - 20} more</span>}
      <Copy text={text} name="metadata" />
    </span>
  );
}

interface TurnState {
  held: boolean;
  expires_at?: string;
  exclusive?: boolean;
}

function Turn({ view }: { view: ThreadView }) {
  const [turn, setTurn] = useState<TurnState>();
  const [problem, setProblem] = useState<Problem>();
  const ask = async () => {
    try {
      setTurn(JSON.parse((await call(`/v1/threads/${view.id}/turn`)).text) as TurnState);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  // once: each time is a read, which would start the time of the thread over
  useEffect(() => void ask(), [view]);
  if (problem) return <span class="dim">{problem.code}</span>;
  return (
    <>
      {!turn ? (
        "…"
      ) : turn.held ? (
        <>
          held{turn.exclusive ? ", exclusive" : ""}, <Left until={turn.expires_at ?? null} />
        </>
      ) : (
        "free"
      )}{" "}
      <button type="button" class="quiet" aria-label="Ask for the turn again" onClick={() => void ask()}>
        ↻
      </button>
    </>
  );
}

function Export({ id }: { id: string }) {
  const download = async () => {
    try {
      const { text } = await call(`/v1/threads/${id}/export`);
      const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = "thread.json";
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      announce("Exported");
    } catch (error) {
      announce(asProblem(error).message);
    }
  };
  return (
    <button type="button" onClick={download}>
      Export
    </button>
  );
}
