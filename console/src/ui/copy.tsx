import { hrefOfThread } from "../ids.js";
import { shortId } from "../format.js";
import { announce } from "./announce.js";

/** Copies text to the clipboard. Falls back to `execCommand`, because the clipboard API requires HTTPS or localhost. */
async function copy(text: string, name: string): Promise<void> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
    } else {
      const area = document.createElement("textarea");
      area.value = text;
      (document.querySelector("dialog[open]") ?? document.body).append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error();
    }
    announce(`Copied: ${name}`);
  } catch {
    announce("The browser did not allow copying.");
  }
}

export function Copy({ text, name, label = "Copy" }: { text: string | (() => string); name: string; label?: string }) {
  const onClick = (event: Event) => {
    event.preventDefault();
    event.stopPropagation();
    void copy(typeof text === "string" ? text : text(), name);
  };
  return (
    <button type="button" class="quiet copy" aria-label={`Copy ${name}`} title={`Copy ${name}`} onClick={onClick}>
      {label}
    </button>
  );
}

export function ThreadId({ id, whole = false }: { id: string; whole?: boolean }) {
  return (
    <span class="id">
      <a href={hrefOfThread(id)} title={id}>
        <code>{whole ? id : shortId(id)}</code>
      </a>
      <Copy text={id} name="id" />
    </span>
  );
}

export function Command({ text, name }: { text: string; name: string }) {
  return (
    <div class="command">
      <pre tabIndex={0} aria-label={name}>
        {text}
      </pre>
      <Copy text={text} name={name} />
    </div>
  );
}
