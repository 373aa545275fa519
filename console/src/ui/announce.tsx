import { signal } from "@preact/signals";

const message = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  message.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (message.value = ""), 4_000);
}

export function Announcements() {
  return (
    <div class="announcement" role="status" aria-live="polite" data-shown={message.value !== ""}>
      {message.value}
    </div>
  );
}
