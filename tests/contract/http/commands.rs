use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::client::{Client, OwnThread, new_id};
use crate::support::paths::{program, scratch};
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

over_both_stores![
    ended_threads_are_shown_listed_and_restored,
    a_refused_command_prints_the_error_of_the_server,
    threads_are_listed_and_shown_as_tables_or_json,
    erasing_an_owner_needs_confirmation,
    a_file_that_is_not_an_export_is_not_changed,
    an_import_stops_at_a_refused_line,
    the_fork_command_forks_a_thread,
];

with_own_servers![
    a_tail_prints_events_as_they_arrive,
    endpoints_are_listed_and_replayed,
    an_export_and_an_import_move_all_threads,
    an_import_accepts_crlf_and_rejects_utf_16,
    an_interrupted_export_resumes,
];

const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// Builds a command that calls `server`. The command does not inherit the environment of this process.
fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(args)
        .args(["--server", &format!("http://{}", server.address())])
        .env_clear()
        .env("THREADKEEP_API_KEYS", format!("ops:{API_SECRET}"))
        .current_dir(scratch());
    command
}

async fn run(mut command: Command) -> Output {
    let run = move || command.output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}

async fn lines(server: &Server, args: &[&str]) -> Vec<Value> {
    let output = run(command(server, args)).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

async fn ended_thread(client: &Client) -> OwnThread {
    let thread = client.thread();
    thread.put("state/k", "[1.0]").ok().await;
    thread.patch("", r#"{"metadata":{"m":1}}"#).ok().await;
    thread.delete("").ok().await;
    thread
}

async fn ended_threads_are_shown_listed_and_restored(server: &Server) {
    let client = server.client();
    let (first, second) = (ended_thread(&client).await, ended_thread(&client).await);

    let shown = run(command(server, &["archives", "show", &first.id])).await;
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.ends_with("\"state\":{\"k\":[1.0]}}\n"), "{text}");
    assert!(text.contains(r#""metadata":{"m":1}"#), "{text}");

    let listed = lines(server, &["archives", "list"]).await;
    let ids: Vec<_> = listed.iter().map(|line| line["id"].clone()).collect();
    for thread in [&first, &second] {
        assert!(ids.contains(&json!(thread.id)), "{ids:?}");
    }
    assert!(listed.iter().all(|line| line.get("state").is_none()));
    let later = ["archives", "list", "--since", "2999-01-01T00:00:00Z"];
    assert!(lines(server, &later).await.is_empty());

    let restored = lines(server, &["archives", "restore", &first.id]).await;
    assert_eq!(restored[0]["version"], 3);
    assert_eq!(first.state().await, r#"{"k":[1.0]}"#);
}

async fn a_refused_command_prints_the_error_of_the_server(server: &Server) {
    for (args, expected) in [
        (["archives", "show", &new_id()], "404 not_found"),
        (["archives", "restore", "thrd_"], "400 invalid_thread_id"),
        (["events", "tail", "--type=x"], "400 invalid_event_type"),
    ] {
        let output = run(command(server, &args)).await;

        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(output.stdout.is_empty());
    }
}

async fn threads_are_listed_and_shown_as_tables_or_json(server: &Server) {
    let client = server.client();
    let owner = new_id();
    let mut ids = Vec::new();
    for number in 0..3 {
        let body = json!({"owner": owner, "metadata": {"n": number}, "state": {"k": [1.5]}});
        let create = client.post("/v1/threads").bearer(API_SECRET);
        let created = create.json(&body.to_string()).ok().await.json();
        ids.push(created["id"].clone());
    }
    let list = ["threads", "list", "--owner", &owner, "--order", "created"];

    let listed = lines(server, &[&list[..], &["--json"]].concat()).await;
    let mut listed_ids: Vec<_> = listed.iter().map(|line| line["id"].clone()).collect();
    listed_ids.sort_by_key(ToString::to_string);
    ids.sort_by_key(ToString::to_string);
    assert_eq!(listed_ids, ids);
    let filter = ["--json", "--metadata", "n=1"];
    let filtered = lines(server, &[&list[..], &filter].concat()).await;
    assert_eq!(filtered[0]["metadata"], json!({"n": 1}));
    assert_eq!(filtered.len(), 1);
    let table = run(command(server, &[&list[..], &["--limit", "2"]].concat())).await;
    let table = String::from_utf8(table.stdout).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(
        table.lines().skip(1).all(|line| line.ends_with(&owner)),
        "{table}"
    );

    let id = ids[0].as_str().unwrap();
    let shown = run(command(server, &["threads", "show", id, "--json"])).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.ends_with("\"state\":{\"k\":[1.5]}}\n"), "{shown}");
    let table = run(command(server, &["threads", "show", id])).await;
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains(&format!("\"{owner}\"")), "{table}");
    assert!(table.ends_with("5 [1.5]\n"), "{table}");
}

async fn erasing_an_owner_needs_confirmation(server: &Server) {
    let client = server.client();
    let owner = format!("{}/ \u{e9}", new_id());
    for _ in 0..3 {
        let body = json!({"owner": owner, "state": {"k": 1}});
        let create = client.post("/v1/threads").bearer(API_SECRET);
        create.json(&body.to_string()).ok().await;
    }
    let list = ["threads", "list", "--owner", &owner, "--json"];

    let refused = run(command(server, &["threads", "erase", &owner])).await;

    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("--yes"), "{error}");
    assert_eq!(lines(server, &list).await.len(), 3);

    let erase = ["threads", "erase", &owner, "--yes"];
    let erased = lines(server, &[&erase[..], &["--json"]].concat()).await;
    let expected = json!({"owner": owner, "threads": 3, "archives": 0, "complete": true});
    assert_eq!(erased, [expected]);
    assert!(lines(server, &list).await.is_empty());
    let again = run(command(server, &erase)).await;
    let text = String::from_utf8(again.stdout).unwrap();
    let nothing_erased = format!("erased 0 threads and 0 archives of {owner}\n");
    assert_eq!(text, nothing_erased);
}

struct Tail {
    child: Child,
    lines: mpsc::UnboundedReceiver<Value>,
}

impl Tail {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in out.lines() {
                let event = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    async fn next<const N: usize>(&mut self, thread: &OwnThread) -> [Value; N] {
        let mut events = Vec::new();
        while events.len() < N {
            let event = timeout(WAIT_LIMIT, self.lines.recv()).await.unwrap();
            let event = event.expect("the tail should still run");
            if event["subject"] == thread.id {
                events.push(event);
            }
        }
        events.try_into().unwrap()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn a_tail_prints_events_as_they_arrive(backend: Backend) {
    let server = Server::builder(backend).start();
    let client = server.client();
    let types = [
        "events",
        "tail",
        "--type=thread.created",
        "--type=thread.destroyed",
    ];
    let mut tail = Tail::start(command(&server, &types));
    let is_listening = async || {
        let metrics = client.get("/metrics").ok().await.text();
        metrics.contains("threadkeep_event_streams{of=\"all\"} 1")
    };
    until(is_listening).await;

    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;
    thread.delete("").ok().await;

    let [created, destroyed] = tail.next(&thread).await;
    assert_eq!(created["type"], "thread.created");
    assert_eq!(created["data"]["keys"], json!(["k"]));
    assert_eq!(destroyed["type"], "thread.destroyed");
    assert_eq!(destroyed["data"]["state"], json!({"k": 2}));
}

/// `events tail` reconnects, and also prints events that occurred while the server was down.
#[tokio::test]
async fn a_tail_resumes_when_its_server_restarts() {
    let server = Server::start(Backend::Redis);
    let other = server.settings().start();
    let address = server.address();
    let types = ["events", "tail", "--type=thread.created"];
    let mut tail = Tail::start(command(&server, &types));
    until(async || {
        let metrics = server.client().get("/metrics").ok().await.text();
        metrics.contains("threadkeep_event_streams{of=\"all\"} 1")
    })
    .await;
    let (before, meanwhile) = (other.client().thread(), other.client().thread());
    before.put("state/k", "1").ok().await;
    let [_] = tail.next(&before).await;

    server.kill();
    meanwhile.put("state/k", "1").ok().await;
    let _back = server.settings().set("THREADKEEP_LISTEN", address).start();

    let [created] = tail.next(&meanwhile).await;
    assert_eq!(created["data"]["keys"], json!(["k"]));
}

async fn endpoints_are_listed_and_replayed(backend: Backend) {
    let server = &Server::builder(backend).start();
    let body = r#"{"url":"https://example.com/hook","events":["session.completed"]}"#;
    let create = server.client().post("/v1/webhooks").bearer(API_SECRET);
    let created = create.json(body).ok().await.json();
    let id = created["id"].as_str().unwrap();

    let listed = lines(server, &["webhooks", "list"]).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"], id);
    assert!(listed[0].get("secret").is_none());
    let event = "evt_00ff018bcfe5687b0000000007";
    // the command must split these ids into several requests, because the server accepts fewer ids per request
    let many = ["--event", event].repeat(101);
    let many = [&["webhooks", "replay", id][..], &many].concat();
    for args in [&["webhooks", "replay", id][..], &many] {
        assert_eq!(lines(server, args).await, [json!({"replayed": 0})]);
    }
    for kind in ["pending", "failed"] {
        assert!(lines(server, &["webhooks", kind, id]).await.is_empty());
    }
}

async fn run_with(mut command: Command, input: Vec<u8>) -> Output {
    let run = move || {
        let pipe = Stdio::piped;
        command.stdin(pipe()).stdout(pipe()).stderr(pipe());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // a failed command stops reading
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

async fn export(server: &Server, args: &[&str]) -> Vec<u8> {
    let output = run(command(server, &[&["export"], args].concat())).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.is_empty(), "{errors}");
    output.stdout
}

async fn create_threads(client: &Client, count: usize) {
    for number in 0..count {
        let thread = client.thread();
        let value = json!(["x".repeat(number * 100)]).to_string();
        thread.put("state/k", &value).ok().await;
        let owner = json!({"owner": format!("user-{}", number % 2)}).to_string();
        let owned = thread.by_api_key(reqwest::Method::PATCH, "");
        owned.json(&owner).ok().await;
    }
}

async fn an_export_and_an_import_move_all_threads(backend: Backend) {
    let from = Server::start(backend);
    create_threads(&from.client(), 30).await;
    let exported = export(&from, &[]).await;
    assert_eq!(exported.split(|byte| *byte == b'\n').count(), 32);
    assert!(exported.ends_with(b"\n{\"complete\":true}\n"));
    let owned = export(&from, &["--owner", "user-1"]).await;
    assert_eq!(owned.split(|byte| *byte == b'\n').count(), 17);

    let to = Server::start(Backend::Memory);
    let imported = |args: &[&str]| run_with(command(&to, args), exported.clone());
    let first = imported(&["import", "--json"]).await;
    assert!(first.status.success(), "{first:?}");
    let report: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(
        report,
        json!({"imported": 30, "skipped": 0, "complete": true})
    );
    let again = imported(&["threads", "import", "--json", "--if-exists", "skip"]).await;
    let report: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        report,
        json!({"imported": 0, "skipped": 30, "complete": true})
    );
    let replaced = imported(&["import", "--if-exists", "replace"]).await;
    let report = String::from_utf8(replaced.stdout).unwrap();
    assert_eq!(
        report,
        "imported       30\nskipped        0\ncomplete       true\n"
    );

    let ids = |text: &[u8]| {
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| line.starts_with(b"{\"format"));
        let ids = lines
            .map(|line| serde_json::from_slice::<Value>(line).unwrap()["thread"]["id"].clone());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&export(&to, &[]).await), ids(&exported));
}

async fn an_import_accepts_crlf_and_rejects_utf_16(backend: Backend) {
    let from = Server::start(backend);
    create_threads(&from.client(), 3).await;
    let text = String::from_utf8(export(&from, &[]).await).unwrap();
    let to = Server::start(Backend::Memory);
    let import = |input| run_with(command(&to, &["import", "--if-exists", "replace"]), input);

    let lines = format!("\u{feff}\r\n{}", text.replace('\n', "\r\n"));
    let imported = import(lines.into_bytes()).await;
    let utf_16 = text.encode_utf16().flat_map(u16::to_le_bytes);
    let with_bom = [0xff, 0xfe].into_iter().chain(utf_16.clone()).collect();

    assert!(imported.status.success(), "{imported:?}");
    assert!(imported.stdout.starts_with(b"imported       3\n"));
    for input in [with_bom, utf_16.collect()] {
        let refused = import(input).await;
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("it is UTF-16: save it as UTF-8"), "{error}");
    }
}

async fn the_fork_command_forks_a_thread(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    thread
        .post("checkpoints", r#"{"name":"before"}"#)
        .ok()
        .await;
    thread.put("state/k", "2").ok().await;
    let id = new_id();
    let fork = ["threads", "fork", &thread.id];
    let options = ["--id", &id, "--owner", "ann", "--checkpoint", "1", "--json"];

    let forked = lines(server, &[&fork[..], &options].concat()).await;

    assert_eq!(
        (&forked[0]["id"], &forked[0]["owner"]),
        (&json!(id), &json!("ann"))
    );
    let copy = server.client().thread_of(&id);
    let state = copy.by_api_key(reqwest::Method::GET, "state").ok().await;
    assert_eq!(state.text(), r#"{"k":1}"#);
    let options = ["--metadata", r#"{"a":1}"#, "--include", "history"];
    let output = run(command(server, &[&fork[..], &options].concat())).await;
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("\nkeys           0\n") && table.contains(r#"{"a":1,"forked_from""#),
        "{table}"
    );
    let output = run(command(server, &[&fork[..], &["--metadata", "{"]].concat())).await;
    assert_eq!(output.status.code(), Some(2));
}

async fn an_interrupted_export_resumes(backend: Backend) {
    let server = Server::start(backend);
    create_threads(&server.client(), 20).await;
    for owner in [&[][..], &["--owner", "user-1"]] {
        let whole = export(&server, owner).await;
        let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::len);
        let lines: Vec<_> = lines.collect();
        let path = scratch().join(format!("export-{}", server.address().port()));
        let resumed = ["--resume", path.to_str().unwrap()];
        let half: usize = lines[..5].iter().map(|bytes| bytes + 1).sum();
        for cut in [0, 10, half, half + 10, whole.len() - 1, whole.len()] {
            std::fs::write(&path, &whole[..cut]).unwrap();

            let printed = export(&server, &[owner, &resumed].concat()).await;

            assert!(printed.is_empty());
            let content = std::fs::read(&path).unwrap();
            assert!(content == whole, "{}", String::from_utf8_lossy(&content));
        }
        // if a client appends every line that it receives, the file also contains the `cursor` line
        let cursor = [&whole[..half], b"{\"cursor\":\"x\"}\n{\"format"].concat();
        std::fs::write(&path, cursor).unwrap();
        export(&server, &[owner, &resumed].concat()).await;
        assert!(std::fs::read(&path).unwrap() == whole);
        std::fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn an_export_reports_unreadable_threads_and_includes_all_others() {
    let redis = crate::support::redis::RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    create_threads(&server.client(), 6).await;
    let owner = ["export", "--owner", "user-1"];
    let whole = export(&server, &[]).await;
    let unreadable: Vec<_> = run(command(&server, &owner)).await.stdout;
    let unreadable = unreadable.split(|byte| *byte == b'\n').take(2).map(|line| {
        let thread: Value = serde_json::from_slice(line).unwrap();
        thread["thread"]["id"].as_str().unwrap().to_owned()
    });
    let unreadable: Vec<String> = unreadable.collect();
    for id in &unreadable {
        let keys = redis.keys();
        let name = keys.iter().find(|name| name.contains(&format!(":t:{id}")));
        redis.call(&["HSET", name.unwrap(), "\"k\"", "1"]);
    }

    for (args, others) in [(&["export"][..], 4), (&owner, 1)] {
        let output = run(command(&server, args)).await;

        assert_eq!(output.status.code(), Some(1));
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(
            report.contains("2 threads are not in the export"),
            "{report}"
        );
        let text = String::from_utf8(output.stdout).unwrap();
        let (errors, documents): (Vec<_>, Vec<_>) = text
            .lines()
            .partition(|line| !line.starts_with("{\"format\""));
        assert_eq!(documents.len(), others);
        assert!(documents.iter().all(|line| contains(&whole, line)));
        assert_eq!(errors.len(), 3);
        for id in &unreadable {
            let line = format!(r#"{{"error":"unreadable","thread_id":"{id}","place":""#);
            assert!(
                errors.iter().any(|error| error.starts_with(&line)),
                "{text}"
            );
        }
        assert_eq!(errors[2], r#"{"complete":true,"failed":2}"#);

        // an export that is interrupted after any line can be resumed, and produces the same result
        let path = scratch().join(format!("partly-{}", server.address().port()));
        let resume = [args, &["--resume", path.to_str().unwrap()]].concat();
        for (end, _) in text.match_indices('\n') {
            std::fs::write(&path, &text[..=end]).unwrap();
            let output = run(command(&server, &resume)).await;
            assert_eq!(output.status.code(), Some(1));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(&path).unwrap();

        let to = Server::start(Backend::Memory);
        let imported = run_with(command(&to, &["import", "--json"]), text.into_bytes()).await;
        assert_eq!(imported.status.code(), Some(1));
        let report: Value = serde_json::from_slice(&imported.stdout).unwrap();
        let expected = json!({"imported": others, "skipped": 0, "complete": true, "failed": 2});
        assert_eq!(report, expected);
    }
}

fn contains(text: &[u8], line: &str) -> bool {
    text.split(|byte| *byte == b'\n')
        .any(|other| other == line.as_bytes())
}

async fn a_file_that_is_not_an_export_is_not_changed(server: &Server) {
    let path = scratch().join(format!("notes-{}", server.address().port()));
    let resume = ["export", "--resume", path.to_str().unwrap()];
    for notes in [
        "notes without a line feed",
        "notes\nof two lines\n",
        "{\"a\":1}\n",
        "{\"format\":1,\"title\":\"a song\"}\nla",
    ] {
        std::fs::write(&path, notes).unwrap();

        let output = run(command(server, &resume)).await;

        let message = "this is not an export";
        assert!(!output.status.success(), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(message),
            "{output:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), notes);
    }
    std::fs::remove_file(&path).unwrap();
}

async fn an_import_stops_at_a_refused_line(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let document = thread
        .by_api_key(reqwest::Method::GET, "export")
        .ok()
        .await
        .text();
    for (input, expected) in [
        (
            format!("{document}\n"),
            "line 1 was not imported: the server answered 409 thread_exists",
        ),
        (
            format!("\n{{\"format\":2}}\n{document}\n"),
            "400 invalid_parameter",
        ),
        ("{\"a\":1}\n".into(), "this is not an export"),
        ("no json".into(), "line 1 was not imported"),
    ] {
        let output = run_with(command(server, &["import"]), input.into_bytes()).await;

        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(output.stdout.is_empty());
    }
}
