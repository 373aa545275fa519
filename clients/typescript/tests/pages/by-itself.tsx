/** Runs checks inside the page, for browsers that Playwright cannot drive. Sends the result to /v1/outcome?... */

import { createRoot } from "react-dom/client";
import { createClient } from "threadkeep";
import { ThreadProvider, useThread } from "threadkeep/react";
import "./visit.js";

function Tab() {
  const { state, status } = useThread();
  return <p>{JSON.stringify({ messages: state["messages"], status })}</p>;
}

/** Opens a frame that acts as a second tab. Frames share cookies, locks and streams in the same way as tabs. */
function openTab(): HTMLIFrameElement {
  const frame = document.createElement("iframe");
  frame.src = "/#tab";
  document.body.append(frame);
  return frame;
}

async function check(): Promise<unknown> {
  const steps: unknown[] = [await (globalThis as any).visit("hello")];
  const thread = createClient().current();
  const tabs = [openTab(), openTab()];
  // a frame has no body while it loads
  const textOf = (tab: HTMLIFrameElement) => tab.contentDocument?.body?.textContent;
  const shown = async (messages: string[] | undefined, status: string) => {
    const expected = JSON.stringify({ messages, status });
    const isShown = () => tabs.every((tab) => textOf(tab) === expected);
    for (const end = Date.now() + 100_000; !isShown(); await new Promise((resolve) => setTimeout(resolve, 20))) {
      if (Date.now() > end) throw new Error(`${expected} is not shown, but ${tabs.map(textOf)}`);
    }
    steps.push(status);
  };
  await shown(["hello", "hello again"], "live");
  await Promise.all(["ä", "b"].map((text) => thread.push("messages", text)));
  await shown(["hello", "hello again", "ä", "b"], "live");
  await thread.destroy();
  await shown(undefined, "destroyed");
  return steps;
}

if (location.hash === "#tab") {
  createRoot(document.getElementById("root")!).render(<ThreadProvider client={createClient()}><Tab /></ThreadProvider>);
} else {
  const outcome = check().catch(String);
  void outcome.then((outcome) => fetch("/v1/outcome?" + encodeURIComponent(JSON.stringify(outcome))));
}
