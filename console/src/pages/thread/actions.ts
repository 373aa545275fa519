import { asProblem } from "../../api/problem.js";
import { call } from "../../api/request.js";
import { announce } from "../../ui/announce.js";
import type { MenuItem } from "../../ui/menu.js";
import type { Phase } from "./view.js";

export type ActionDialog = "set" | "push" | "change" | "fork" | "rotate" | "destroy";

export function actionsOf(id: string, phase: Phase, canWrite: boolean, open: (dialog: ActionDialog) => void): MenuItem[] {
  const writes: MenuItem[] = [
    { label: "Add a message", act: () => open("push") },
    { label: "Set a key", act: () => open("set") },
    { label: "Metadata, TTL, owner", act: () => open("change") },
    { label: "Fork", act: () => open("fork") },
    { label: "Rotate", act: () => open("rotate") },
  ];
  return [
    ...(canWrite ? writes : []),
    ...(phase === "live" ? [{ label: "Export", act: () => void download(id) }] : []),
    ...(canWrite ? [{ label: "Destroy", isDangerous: true, act: () => open("destroy") }] : []),
  ];
}

async function download(id: string): Promise<void> {
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
}
