import { effect } from "@preact/signals";
import { forgetSearch } from "./pages/statistics.js";
import { forgetPlayground } from "./pages/playground.js";
import { forgetThreads } from "./pages/threads/page.js";
import { session } from "./session.js";

// When the key is forgotten, all data that it has read is forgotten too.
effect(() => {
  if (session.value) return;
  forgetThreads();
  forgetSearch();
  forgetPlayground();
});
