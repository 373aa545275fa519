import { effect } from "@preact/signals";
import { forgetSearch } from "./pages/statistics.js";
import { forgetPlayground } from "./pages/playground.js";
import { forgetThreads } from "./pages/threads/page.js";
import { session } from "./session.js";

// A key that is forgotten leaves nothing behind that it has read.
effect(() => {
  if (session.value) return;
  forgetThreads();
  forgetSearch();
  forgetPlayground();
});
