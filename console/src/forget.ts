import { effect } from "@preact/signals";
import { forgetSearch } from "./pages/statistics.js";
import { forgetPlayground } from "./pages/playground.js";
import { forgetThreads } from "./pages/threads/page.js";
import { session } from "./session.js";

// When the session ends, discards all data that the console has read with the API key.
effect(() => {
  if (session.value) return;
  forgetThreads();
  forgetSearch();
  forgetPlayground();
});
