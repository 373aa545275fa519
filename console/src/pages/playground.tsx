import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { type Problem, asProblem } from "../api/problem.js";
import { call } from "../api/request.js";
import { listen } from "../api/stream.js";
import { keyPath } from "../api/state.js";
import { threadOf } from "../api/threads.js";
import type { Thread } from "../api/types.js";
import { messageOf } from "../chat/messages.js";
import { curl } from "../curl.js";
import { clockTime } from "../format.js";
import { hrefOfThread } from "../ids.js";
import { Doc } from "../json/rows.js";
import { elementsOf, member } from "../json/text.js";
import { visible } from "../json/visible.js";
import { can } from "../session.js";
import { Command, ThreadId } from "../ui/copy.js";
import { Failure, Missing } from "../ui/notices.js";

const KEY = "messages";
const NEW_THREAD = { metadata: { title: "Playground" }, state: { [KEY]: [] } };
const RECORDS_MAX = 50;

const thread = signal<Thread | undefined>(undefined);

export function forgetPlayground(): void {
  thread.value = undefined;
}

/** Shows two writers of one thread side by side. Stores the messages of both writers, and shows them in both panes. */
export function PlaygroundPage() {
  const [problem, setProblem] = useState<Problem>();
  if (!can("threads")) return <Missing right="threads" />;
  const create = async () => {
    try {
      thread.value = threadOf((await call("/v1/threads", { method: "POST", body: JSON.stringify(NEW_THREAD) })).text);
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const created = thread.value;
  return (
    <>
      <h1>Playground</h1>
      <p>
        A thread is one conversation. Create one, add messages to it from two panes at the same moment, and see that both are kept and that both
        panes hear of them.
      </p>
      <section class="step">
        <h2>1. Create a thread</h2>
        <div class="actions">
          <button type="button" class="primary" onClick={create}>
            {created ? "Create another thread" : "Create a thread"}
          </button>
          {created && <ThreadId id={created.id} whole />}
        </div>
        <Command name="command to create a thread" text={curl("POST", "/v1/threads", { body: JSON.stringify(NEW_THREAD) , headers: [] })} />
      </section>
      {problem && <Failure problem={problem} />}
      {created && <Panes key={created.id} thread={created} />}
    </>
  );
}

const pushPath = (id: string) => `${keyPath(id, KEY)}/push`;

const push = (id: string, role: string, content: string) =>
  call(pushPath(id), { method: "POST", query: { max_records: RECORDS_MAX }, body: JSON.stringify({ role, content }) });

const WRITERS = [
  { name: "Left", role: "user" },
  { name: "Right", role: "assistant" },
];

const helloOf = (name: string) => `Hello from the ${name.toLowerCase()} pane`;

const signedBy = ({ signed_id }: Thread) => [`x-thread-id: ${signed_id ?? ""}`];

const pushLine = (thread: Thread, role: string, content: string) =>
  curl("POST", `/v1/threads/current/state/${KEY}/push?max_records=${RECORDS_MAX}`, { body: JSON.stringify({ role, content }), headers: signedBy(thread) });

function Panes({ thread }: { thread: Thread }) {
  const [problem, setProblem] = useState<Problem>();
  const headers = signedBy(thread);
  const pushBoth = async () => {
    const time = clockTime(Date.now());
    try {
      await Promise.all(WRITERS.map(({ name, role }) => push(thread.id, role, `From the ${name.toLowerCase()} pane at ${time}`)));
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <>
      <section class="step">
        <h2>2. Add messages from two panes</h2>
        <div class="panes">
          {WRITERS.map(({ name, role }) => (
            <Pane key={name} name={name} role={role} thread={thread} />
          ))}
        </div>
        <div class="actions">
          <button type="button" class="primary" onClick={pushBoth}>
            Add from both at once
          </button>
        </div>
        {problem && <Failure problem={problem} />}
        <Command name="command to push from both" text={`${WRITERS.map(({ name, role }) => pushLine(thread, role, helloOf(name))).join(" & ")} & wait`} />
      </section>
      <section class="step">
        <h2>3. Read it, and listen</h2>
        <p class="dim">These commands send the signed id of this thread, like a browser that uses your application. They can access no other thread.</p>
        <Command name="command to read" text={curl("GET", `/v1/threads/current/state/${KEY}?tail=20`, { headers })} />
        <Command name="command to listen" text={curl("GET", "/v1/threads/current/events?values=true", { headers }).replace("curl -s", "curl -sN")} />
        <div class="actions">
          <a class="button" href={hrefOfThread(thread.id)}>
            Open its page
          </a>
          <a class="button" href="#/threads">
            All threads
          </a>
        </div>
      </section>
    </>
  );
}

function Pane({ name, role, thread }: { name: string; role: string; thread: Thread }) {
  const [messages, setMessages] = useState<string[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const controller = new AbortController();
    const read = async () => {
      try {
        const { text } = await call(keyPath(thread.id, KEY), { signal: controller.signal });
        setMessages(elementsOf(text));
      } catch (error) {
        if (!controller.signal.aborted) setProblem(asProblem(error));
      }
    };
    const stop = listen(`/v1/threads/${thread.id}/events`, { values: true }, {
      onState: (state) => {
        setOpen(state === "open");
        if (state === "open") void read();
      },
      onEvent: ({ data }) => {
        const values = memberAt(data, "data", "values", KEY);
        if (values === undefined) void read();
        else setMessages(elementsOf(values));
      },
      onProblem: setProblem,
    });
    return () => {
      stop();
      controller.abort();
    };
  }, [thread.id]);
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await push(thread.id, role, text || helloOf(name));
      setText("");
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <section class="pane" aria-label={`${name} pane`}>
      <div class="pane-head">
        <h3>{name}</h3>
        <span class={isOpen ? "status on" : "status off"}>{isOpen ? "listening" : "not connected"}</span>
      </div>
      <ol class="pane-messages" tabIndex={0} aria-label={`Messages in the ${name.toLowerCase()} pane`}>
        {messages.slice(-RECORDS_MAX).map((json, i) => {
          const message = messageOf(json);
          return (
            <li key={i}>
              <bdi class="role">{visible(message.role)}</bdi> <span dir="auto">{visible(message.text.slice(0, 2_000))}</span>
            </li>
          );
        })}
      </ol>
      <form class="send" onSubmit={send}>
        <input aria-label={`Message of the ${name.toLowerCase()} pane`} placeholder={`Message, as ${role}`} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <button type="submit" class="primary">
          Add
        </button>
      </form>
      <Command name={`command of the ${name.toLowerCase()} pane`} text={pushLine(thread, role, text || helloOf(name))} />
      {problem && <Failure problem={problem} />}
    </section>
  );
}

function memberAt(text: string, ...names: string[]): string | undefined {
  let span = new Doc(text).root;
  for (const name of names) {
    const found = member(text, span, name);
    if (!found) return undefined;
    span = found;
  }
  return text.slice(span.start, span.end);
}
