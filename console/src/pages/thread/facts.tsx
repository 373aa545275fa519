import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { type Problem, asProblem } from "../../api/problem.js";
import { call } from "../../api/request.js";
import type { Thread } from "../../api/types.js";
import { count, duration } from "../../format.js";
import { membersOf } from "../../json/text.js";
import { excerpt, readableExcerpt, visible } from "../../json/visible.js";
import { Bar } from "../../ui/bar.js";
import { Copy } from "../../ui/copy.js";
import { Ago, Left } from "../../ui/time.js";
import type { ThreadView } from "./view.js";

const OWNER_MAX = 30;

/** Shows as many figures as fit on one line, starting with the most important. A button shows all figures. */
export function Facts({ view, thread }: { view: ThreadView; thread: Thread }) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const phase = view.phase.value;
  return (
    <div class="facts-line">
      <dl class={isOpen ? "facts open" : "facts"} id={id}>
        <div>
          <dt>Size</dt>
          <dd>
            <Bar value={thread.size_bytes} max={thread.limit_bytes} name="Size of the state" />
          </dd>
        </div>
        <Fact name="Time left">{phase === "live" ? <Left until={thread.expires_at} /> : "–"}</Fact>
        <Fact name="Version">{count(view.version)}</Fact>
        <Fact name="Changed">
          <Ago at={thread.updated_at} />
        </Fact>
        <Fact name="Created">
          <Ago at={thread.created_at} />
        </Fact>
        <Fact name="Owner">
          {thread.owner ? <Owner owner={thread.owner} /> : "–"}
        </Fact>
        <Fact name="Metadata">
          <Metadata text={thread.metadata} />
        </Fact>
        <Fact name="Keys">{count(view.state.value.size)}</Fact>
        <Fact name="TTL">{duration(thread.ttl_seconds * 1_000)}</Fact>
        <Fact name="Turn">
          <Turn view={view} />
        </Fact>
      </dl>
      <button type="button" class="quiet" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "One line" : "All figures"}
      </button>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class={`fact-${name.toLowerCase()}`}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

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
  const readTurn = async () => {
    try {
      setTurn(JSON.parse((await call(`/v1/threads/${view.id}/turn`)).text) as TurnState);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  // reads only once, because each read extends the thread's lifetime
  useEffect(() => void readTurn(), [view]);
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
      <button type="button" class="quiet" aria-label="Refresh the turn" title="Refresh the turn" onClick={() => void readTurn()}>
        ↻
      </button>
    </>
  );
}
