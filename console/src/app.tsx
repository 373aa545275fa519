import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./api/problem.js";
import { isReachable, recoveries } from "./api/request.js";
import { activeKeys, isHelpShown } from "./keyboard.js";
import { isHash } from "./ids.js";
import { PAGES } from "./pages.js";
import { ArchivePage, ArchivesPage } from "./pages/archives.js";
import { EventsPage } from "./pages/events.js";
import { Finder } from "./pages/finder.js";
import { HomePage } from "./pages/home.js";
import { Login } from "./pages/login.js";
import { OverviewPage } from "./pages/overview/page.js";
import { PlaygroundPage } from "./pages/playground.js";
import { SettingsPage } from "./pages/settings.js";
import { StatisticsPage } from "./pages/statistics.js";
import { ThreadPage } from "./pages/thread/page.js";
import { ThreadsPage } from "./pages/threads/page.js";
import { WebhooksPage } from "./pages/webhooks.js";
import { type Route, route, shownPart } from "./route.js";
import { can, docs, loadServerInfo, openAtStart, session } from "./session.js";
import "./forget.js";
import "./stats/collector.js";
import { Announcements } from "./ui/announce.js";
import { Dialog } from "./ui/dialog.js";
import { Icon } from "./ui/icon.js";
import { Empty, Failure, Missing } from "./ui/notices.js";

export function App() {
  const [isStarted, setStarted] = useState(false);
  useEffect(() => {
    void Promise.all([openAtStart(), loadServerInfo()]).then(() => setStarted(true));
  }, []);
  useEffect(() => {
    if (recoveries.value > 0) void loadServerInfo();
  }, [recoveries.value]);
  return (
    <>
      {!isReachable.value && (
        <div class="banner" role="alert">
          The service does not answer. The console retries every second.
        </div>
      )}
      {isStarted && (session.value ? <Shell /> : <Login />)}
      {isHelpShown.value && (
        <Dialog title="Keys" onClose={() => (isHelpShown.value = false)}>
          <dl class="keys">
            {activeKeys().map(([keys, meaning]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
      <Announcements />
    </>
  );
}

/** Returns the title of the tab. Titles contain hashes instead of thread IDs, because browsers store titles. */
function titleOf({ page, rest: [hash = ""] }: Route, part: string): string {
  const label = PAGES.find(([name]) => name === page)?.[1];
  const subject = label && isHash(hash) ? `${label.replace(/s$/, "")} ${hash.slice(0, 8)}` : label;
  return [subject, subject === label ? "" : part, "threadkeep console"].filter(Boolean).join(" · ");
}

function Shell() {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const current = route.value;
  useEffect(() => {
    setMenuOpen(false);
    document.querySelector("main")?.scrollTo(0, 0);
  }, [current.page, current.rest[0]]);
  const title = titleOf(current, shownPart.value);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}>
        Skip to content
      </a>
      <header class="topbar">
        <a class="brand" href="#/">
          <Icon size={22} /> threadkeep
        </a>
        <button type="button" class="menu" aria-expanded={isMenuOpen} aria-controls="menu" onClick={() => setMenuOpen(!isMenuOpen)}>
          Menu
        </button>
      </header>
      <nav id="menu" class={isMenuOpen ? "side open" : "side"} aria-label="Pages">
        {PAGES.map(([page, label, right]) => {
          const isAllowed = !right || can(right);
          return (
            <a key={page} href={`#/${page}`} aria-current={page === current.page ? "page" : undefined} class={isAllowed ? "" : "locked"}>
              {label}
              {!isAllowed && <span class="lock"> needs {right}</span>}
            </a>
          );
        })}
        <span class="spacer" />
        <a href={docs} target="_blank" rel="noreferrer">
          API docs
        </a>
        <button type="button" class="quiet" onClick={() => (isHelpShown.value = true)}>
          Keys <kbd>?</kbd>
        </button>
        <p class="who dim">
          key <strong>{session.value?.name}</strong>
        </p>
      </nav>
      <main id="main" tabIndex={-1} data-scroller>
        <div class="content">
          <Guard key={`${current.page}/${current.rest[0] ?? ""}`}>
            <Page route={current} />
          </Guard>
        </div>
      </main>
    </div>
  );
}

/** Shows an error instead of a page that failed. Other pages remain usable. */
class Guard extends Component<{ children: ComponentChildren }, { error?: Error | undefined }> {
  override componentDidCatch(error: Error): void {
    reportError(error);
    this.setState({ error });
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <Failure problem={new Problem(0, "console", `This page of the console has failed: ${error.message}`)} onRetry={() => this.setState({ error: undefined })} />;
  }
}

function Page({ route: { page, rest } }: { route: Route }) {
  const [first = "", part = ""] = rest;
  const [, label, right] = PAGES.find(([name]) => name === page) ?? [];
  if (right && !can(right))
    return (
      <>
        <h1>{label}</h1>
        <Missing right={right} />
      </>
    );
  switch (page) {
    case "":
      return <HomePage />;
    case "overview":
      return <OverviewPage />;
    case "threads":
      return first ? finderPage(first, (id) => <ThreadPage key={id} id={id} part={part} />, "threads") : <ThreadsPage />;
    case "playground":
      return <PlaygroundPage />;
    case "events":
      return <EventsPage />;
    case "webhooks":
      return <WebhooksPage />;
    case "archives":
      return first ? finderPage(first, (id) => <ArchivePage key={id} id={id} />, "archives") : <ArchivesPage />;
    case "statistics":
      return <StatisticsPage />;
    case "settings":
      return <SettingsPage />;
    default:
      return (
        <>
          <h1>Not found</h1>
          <Empty title="There is no such page.">
            <p>
              <a href="#/">Go to the first page</a>
            </p>
          </Empty>
        </>
      );
  }
}

function finderPage(hash: string, page: (id: string) => preact.JSX.Element, among: "threads" | "archives") {
  if (!isHash(hash))
    return (
      <>
        <h1>Not found</h1>
        <Empty title="This address names no thread." />
      </>
    );
  return <Finder key={hash} hash={hash} among={among} page={page} />;
}
