import { useEffect } from "preact/hooks";
import { listThreads } from "../api/threads.js";
import { useLoad } from "../load.js";
import { firstPage } from "../pages.js";
import { replace } from "../route.js";
import { can } from "../session.js";
import { Loading } from "../ui/notices.js";
import { OverviewPage } from "./overview/page.js";
import { PlaygroundPage } from "./playground.js";

export function HomePage() {
  const { value, problem } = useLoad(async (signal) => {
    if (!can("threads")) return false;
    const { items, next } = await listThreads({ owner: "", order: "updated", metadata: undefined }, null, signal);
    return items.length === 0 && next === null;
  }, []);
  if (value === undefined && !problem) return <Loading />;
  if (value) return <PlaygroundPage />;
  const page = firstPage();
  return page === "overview" ? <OverviewPage /> : <Redirect to={`#/${page}`} />;
}

function Redirect({ to }: { to: string }) {
  useEffect(() => replace(to), [to]);
  return <Loading />;
}
