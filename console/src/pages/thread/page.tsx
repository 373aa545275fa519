import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { recoveries } from "../../api/request.js";
import { conversations } from "../../chat/conversations.js";
import { now } from "../../clock.js";
import { hrefOfArchive, hrefOfThread } from "../../ids.js";
import { type Loaded } from "../../load.js";
import { shownPart } from "../../route.js";
import { can } from "../../session.js";
import { Copy, ThreadId } from "../../ui/copy.js";
import { Menu } from "../../ui/menu.js";
import { Empty, Failure, Loading } from "../../ui/notices.js";
import { Tabs } from "../../ui/tabs.js";
import { Tree } from "../../ui/tree.js";
import { type ActionDialog, actionsOf } from "./actions.js";
import { ChatTab } from "./chat-tab.js";
import { CheckpointsTab } from "./checkpoints-tab.js";
import { ChangeDialog, DestroyDialog, EditDialog, ForkDialog, PushDialog, RotateDialog } from "./dialogs.js";
import { Facts } from "./facts.js";
import { type HistoryMessages, useHistoryMessages } from "./history-messages.js";
import { HistoryTab } from "./history-tab.js";
import { ScopeTab } from "./scope-tab.js";
import { SetDialog } from "./set-dialog.js";
import { keepTime } from "./time-left.js";
import { SHOWN_MS, ThreadView } from "./view.js";

const PARTS = new Map([
  ["chat", "Chat"],
  ["state", "State"],
  ["history", "History"],
  ["checkpoints", "Checkpoints"],
  ["scope", "Scope"],
]);
type Open = { kind: "edit"; key: string } | { kind: ActionDialog };

export function ThreadPage({ id, part: requestedPart }: { id: string; part: string }) {
  const part = PARTS.has(requestedPart) ? requestedPart : "";
  const view = useMemo(() => new ThreadView(id), [id]);
  useEffect(() => () => view.close(), [view]);
  useEffect(() => keepTime(view), [view]);
  useEffect(() => {
    if (view.phase.value !== "loading") void view.load();
  }, [recoveries.value]);
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const phase = view.phase.value;
  const thread = view.thread.value;
  const state = view.state.value;
  const chats = conversations(state);
  const isLoaded = phase !== "loading" && phase !== "absent" && phase !== "failed";
  // the first tab is chosen only once, so that a later message does not replace the tab that the user is reading
  const firstTab = useRef<string | undefined>(undefined);
  const history = useHistoryMessages(view, isLoaded && (part === "chat" || (part === "" && firstTab.current !== "state")));
  if (isLoaded) firstTab.current ??= tabOf(chats.size > 0, history);
  const tab = part || firstTab.current;
  const label = PARTS.get(tab ?? "") ?? "";
  useEffect(() => {
    shownPart.value = label;
    return () => (shownPart.value = "");
  }, [label]);
  const canWrite = can("threads") && (phase === "live" || phase === "absent");
  const isShown = thread && phase !== "absent" && phase !== "loading";
  const actions = isShown ? actionsOf(id, phase, canWrite, (kind) => setOpen({ kind })) : [];

  return (
    <>
      <header class="page-head thread-head">
        <h1 class="with-id">
          Thread <code>{id}</code> <Copy text={id} name="id" />
        </h1>
        <Status view={view} />
        {actions.length > 0 && <Menu label="Actions" items={actions} />}
      </header>
      {phase === "failed" && <Failure problem={view.problem.value!} onRetry={() => void view.load()} />}
      {phase === "loading" && <Loading />}
      {phase === "absent" && (
        <Empty title="There is no thread with this id.">
          <p>It has ended, or was never written. This page shows the thread as soon as it is written.</p>
          <p>
            <a href={hrefOfArchive(id)}>Search the archives</a>
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
      {isShown && (
        <>
          <Facts view={view} thread={thread} />
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

function tabOf(hasChats: boolean, history: Loaded<HistoryMessages | undefined>): string | undefined {
  if (hasChats || history.value?.messages) return "chat";
  return history.value || history.problem ? "state" : undefined;
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
  // reads the clock only while a change is highlighted, because each tick causes a render
  const fresh = changes.size === 0 ? changes : new Map([...changes].filter(([, { at }]) => Math.max(now.value, Date.now()) - at < SHOWN_MS));
  if (state.size === 0)
    return (
      <Empty title="The state is empty.">
        <p>Set a key or add a message, here or through the API. This page shows it immediately.</p>
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
