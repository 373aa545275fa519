import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format.js";
import { pretty } from "../json/pretty.js";
import { visible } from "../json/visible.js";
import { Copy } from "../ui/copy.js";
import { messageOf } from "./messages.js";

/** Messages that are shown at once. */
const WINDOW = 60;
/** Units of a text before it is folded. */
const FOLD = 1_500;
const OPEN_MAX = 200_000;

/** A conversation: the newest messages, and earlier ones on demand. It stays at the end while one looks at the end. */
export function Chat({ messages, name }: { messages: readonly string[]; name: string }) {
  const [shown, setShown] = useState(WINDOW);
  const ref = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const first = Math.max(0, messages.length - shown);

  useLayoutEffect(() => {
    const scroller = ref.current!;
    const onScroll = () => (isAtEnd.current = scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 80);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => scroller.removeEventListener("scroll", onScroll);
  }, []);
  useLayoutEffect(() => {
    const scroller = ref.current!;
    if (isAtEnd.current) scroller.scrollTop = scroller.scrollHeight;
  }, [messages.length]);

  return (
    <div class="chat" ref={ref} role="log" aria-label={name} tabIndex={0}>
      {first > 0 && (
        <button type="button" onClick={() => setShown(shown + WINDOW)}>
          Show {count(Math.min(WINDOW, first))} earlier of {count(first)}
        </button>
      )}
      <ol start={first}>
        {messages.slice(first).map((message, i) => (
          <Bubble key={first + i} json={message} index={first + i} />
        ))}
      </ol>
    </div>
  );
}

const sideOf = (role: string) => (/^(user|human)$/.test(role) ? "user" : /^(assistant|ai|model)$/.test(role) ? "assistant" : "other");

function Bubble({ json, index }: { json: string; index: number }) {
  const message = useMemo(() => messageOf(json), [json]);
  return (
    <li class={`bubble ${sideOf(message.role)}`}>
      <div class="bubble-head">
        <bdi class="role">{visible(message.role.slice(0, 40))}</bdi>
        <span class="dim">{index}</span>
        <Copy text={message.json} name={`message ${index}`} />
      </div>
      {message.text && <Folded text={message.text} />}
      {message.parts.map((part, i) => (
        <Part key={i} name={part.name} json={part.json} />
      ))}
    </li>
  );
}

function Folded({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const isLong = text.length > FOLD;
  return (
    <>
      <p class="bubble-text" dir="auto">
        {visible(text.slice(0, isOpen ? OPEN_MAX : FOLD))}
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

/** A part that is not text, closed at first. */
function Part({ name, json }: { name: string; json: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="part" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <bdi>{visible(name.slice(0, 60))}</bdi>
      </summary>
      {isOpen && (
        <pre tabIndex={0} dir="auto" aria-label={name}>
          {visible(json.length > FOLD * 20 ? json.slice(0, FOLD * 20) + "…" : pretty(json))}
        </pre>
      )}
    </details>
  );
}
