import type { ComponentChildren } from "preact";
import type { Problem } from "../api/problem.js";
import { visible } from "../json/visible.js";
import { PAGES, firstPage } from "../pages.js";
import { Copy } from "./copy.js";

export function Failure({ problem, onRetry }: { problem: Problem; onRetry?: (() => void) | undefined }) {
  return (
    <div class="failure" role="alert">
      <p>
        <strong>{problem.status ? `${problem.status} ${problem.code}` : problem.code}</strong> {visible(problem.message)}
      </p>
      {problem.requestId && (
        <p class="dim">
          Request <code>{problem.requestId}</code> <Copy text={problem.requestId} name="request id" />
        </p>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Shown instead of a page that the API key may not open. Links to a page that the key may open. */
export function Missing({ right }: { right: string }) {
  const page = firstPage();
  const label = PAGES.find(([name]) => name === page)?.[1];
  return (
    <Empty title="This API key does not open this page.">
      <p>
        The page needs the right <code>{right}</code>. Grant it with the setting <code>api_key_rights</code>, or use another key.
      </p>
      <p>
        This key has access to <a href={`#/${page}`}>{label}</a>.
      </p>
    </Empty>
  );
}

export function Loading() {
  return (
    <p class="dim" role="status">
      Loading …
    </p>
  );
}
