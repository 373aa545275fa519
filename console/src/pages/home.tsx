import { useLoad } from "../load.js";
import { listThreads } from "../api/threads.js";
import { can } from "../session.js";
import { Loading } from "../ui/notices.js";
import { OverviewPage } from "./overview/page.js";
import { PlaygroundPage } from "./playground.js";

/** The first page: the playground while the service has no threads, and then the overview. */
export function HomePage() {
  const { value, problem } = useLoad(async (signal) => {
    if (!can("threads")) return false;
    const { items, next } = await listThreads({ owner: "", order: "updated", metadata: undefined }, null, signal);
    return items.length === 0 && next === null;
  }, []);
  if (value === undefined && !problem) return <Loading />;
  return value ? <PlaygroundPage /> : <OverviewPage />;
}
