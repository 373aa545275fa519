import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format.js";
import { pretty } from "../json/pretty.js";
import { readable, visible } from "../json/visible.js";
import { Copy } from "../ui/copy.js";
import { type Message, type Part, messageOf } from "./messages.js";

const WINDOW = 60;
const FOLDED_MAX = 1_500;
const OPEN_MAX = 200_000;
const PART_MAX = 30_000;
const ROLE_MAX = 120;

/**
 * Shows the newest messages, and earlier messages on demand. If the user has scrolled to the end, keeps the end in view
 * when messages arrive or the box is resized. A search hides messages that do not contain `search`.
 */
export function Chat({ messages: all, name, isSearched = false }: { messages: readonly string[]; name: string; isSearched?: boolean }) {
  const [shown, setShown] = useState(WINDOW);
  const [search, setSearch] = useState("");
  const ref = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const messages = useMemo(() => matching(all, search), [all, search]);
  const first = Math.max(0, messages.length - shown);

  useLayoutEffect(() => {
    const scroller = ref.current!;
    const onScroll = () => (isAtEnd.current = scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 80);
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) scroller.scrollTop = scroller.scrollHeight;
    });
    observer.observe(scroller);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", onScroll);
    };
  }, []);
  useLayoutEffect(() => {
    const scroller = ref.current!;
    if (isAtEnd.current) scroller.scrollTop = scroller.scrollHeight;
  }, [messages.length]);

  return (
    <>
      {isSearched && (
        <input
          type="search"
          class="chat-search"
          aria-label="Find a message"
          placeholder="Find a message"
          data-search
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      {search && messages.length === 0 && <p class="dim">No message contains this text.</p>}
      <div class="chat" ref={ref} role="log" aria-label={name} tabIndex={0}>
        {first > 0 && (
          <button type="button" onClick={() => setShown(shown + WINDOW)}>
            Show {count(Math.min(WINDOW, first))} earlier of {count(first)}
          </button>
        )}
        <ol>
          {messages.slice(first).map(({ json, index }) => (
            <Bubble key={index} json={json} index={index} />
          ))}
        </ol>
      </div>
    </>
  );
}

function matching(messages: readonly string[], search: string): { json: string; index: number }[] {
  const term = search.trim().toLowerCase();
  const all = messages.map((json, index) => ({ json, index }));
  return term ? all.filter(({ json }) => contains(messageOf(json), term)) : all;
}

const contains = ({ role, text, parts }: Message, term: string) =>
  [role, text, ...parts.map(({ json }) => readable(json))].some((text) => text.toLowerCase().includes(term));

function Bubble({ json, index }: { json: string; index: number }) {
  const message = useMemo(() => messageOf(json), [json]);
  return (
    <li class={`bubble ${message.side}`}>
      <div class="bubble-head">
        <bdi class="role">{visible(message.role.slice(0, ROLE_MAX))}</bdi>
        <span class="dim">{index}</span>
        <Copy text={message.json} name={`message ${index}`} />
      </div>
      {message.text && <Folded text={message.text} />}
      {message.parts.map((part, i) => (
        <PartBox key={i} part={part} />
      ))}
    </li>
  );
}

function Folded({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const isLong = text.length > FOLDED_MAX;
  return (
    <>
      <p class="bubble-text" dir="auto">
        {visible(text.slice(0, isOpen ? OPEN_MAX : FOLDED_MAX))}
        {isLong && !isOpen && "…"}
      </p>
      {isLong && (
        <button type="button" class="quiet" onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Fold" : `Show all ${count(text.length)} characters`}
        </button>
      )}
    </>
  );
}

/** A message part other than text. Initially closed, unless it is the main content of its message. */
function PartBox({ part: { name, json, text, isOpen: isMain = false } }: { part: Part }) {
  const isOpenAtFirst = isMain && json.length <= FOLDED_MAX;
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const part = text ?? (json.length > PART_MAX ? json : pretty(json));
  const shown = part.length > PART_MAX ? part.slice(0, PART_MAX) + "…" : part;
  return (
    <details class="part" open={isOpenAtFirst} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <bdi>{visible(name.slice(0, ROLE_MAX))}</bdi>
      </summary>
      {isOpen && (
        <pre tabIndex={0} dir="auto" aria-label={name}>
          {text === undefined ? readable(shown) : visible(shown)}
        </pre>
      )}
    </details>
  );
}
