use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use threadkeep::config::Setting;

use crate::support::paths::{program, scratch};

const ID: &str = "thrd_0123456789abcdef0123456789abcdef";
const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn threadkeep(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args).env_clear().current_dir(scratch());
    command
}

fn with_key(args: &[&str]) -> Command {
    let mut command = threadkeep(args);
    command.env("THREADKEEP_SIGNING_KEYS", format!("main:{SECRET}"));
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            (line["message"] == "listening").then(|| line["address"].as_str().unwrap().to_owned())
        });
        // keep reading, because a full pipe would block the server
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address: address.unwrap(),
        }
    }

    fn signal(&self, signal: &str) {
        // use the shell's builtin, because not every machine has a `kill` program
        let kill = format!("kill {signal} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_signed_id_verifies_as_a_header_and_as_a_cookie() {
    let signed = stdout(&with_key(&["sign", ID]).output().unwrap());
    let header = signed.trim_end();
    let (id, signature) = header.split_once(';').unwrap();
    let escaped = signature.replace('+', "%2B").replace('/', "%2F");
    let cookie = format!("{id}.{}", escaped.replace('=', "%3D"));

    for form in [header, &cookie] {
        let verified = with_key(&["verify", form]).output().unwrap();
        assert_eq!(stdout(&verified), format!("{ID} main\n"));
    }
    let tampered = header.replace("0123", "0124");
    let refused = with_key(&["verify", &tampered]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(stdout(&refused), "");
}

#[test]
fn sign_fails_without_a_configured_key() {
    let refused = threadkeep(&["sign", ID]).output().unwrap();

    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("signing_keys"));
}

#[test]
fn keygen_prints_a_key_that_the_configuration_accepts() {
    let key = stdout(&threadkeep(&["keygen", "--name", "new"]).output().unwrap());
    let other = stdout(&threadkeep(&["keygen", "--name", "new"]).output().unwrap());

    let mut config = threadkeep(&["config", "--listen", "0.0.0.0:80"]);
    let config = config.args(["--signing-keys", key.trim_end()]).output();

    assert!(config.unwrap().status.success());
    assert_ne!(key, other);
}

#[test]
fn config_prints_the_source_of_each_value_and_no_secret() {
    let mut command = with_key(&["config", "--max-keys", "7"]);

    let output = command.output().unwrap();

    assert!(output.status.success());
    let rows: Vec<_> = stdout(&output)
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for row in [
        "max_keys 7 --max-keys",
        "signing_keys main:*** THREADKEEP_SIGNING_KEYS",
        "listen 127.0.0.1:8080 default",
    ] {
        assert!(
            rows.iter().any(|printed| printed == row),
            "{row} in {rows:?}"
        );
    }
    assert!(!stdout(&output).contains(SECRET));
}

#[test]
fn the_help_of_a_command_fits_on_a_screen() {
    for args in [
        &["--help"][..],
        &["serve", "--help"],
        &["keygen", "--help"],
        &["archives", "--help"],
        &["archives", "list", "--help"],
        &["help", "webhooks", "replay"],
    ] {
        let help = stdout(&threadkeep(args).output().unwrap());
        assert!(help.contains("--config"), "{args:?}: {help}");
        assert!(help.lines().count() <= 24, "{args:?}: {help}");
    }
}

#[test]
fn the_help_of_settings_lists_the_flag_and_variable_of_each_setting() {
    let help = stdout(&threadkeep(&["help", "settings"]).output().unwrap());
    let printed = stdout(&threadkeep(&["settings"]).output().unwrap());

    assert_eq!(help.trim_end(), printed.trim_end());
    for setting in Setting::all() {
        let Setting { name, default, .. } = setting;
        let (flag, variable) = (setting.flag(), setting.variable());
        let row = format!("\n{name} = {default}\n    --{flag}, {variable}\n");
        assert!(help.contains(&row), "{row}");
    }
}

#[test]
fn a_terminal_gets_a_startup_summary_and_a_text_log() {
    let program = program();
    let command = format!("{} --listen localhost:0", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env_clear();
    let script = script.current_dir(scratch());
    let mut child = script.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();

    let lines = lines.map(|line| line.unwrap().trim_end().to_owned());
    let mut lines = lines.skip_while(|line| !line.starts_with("threadkeep "));
    let printed: Vec<_> = lines.by_ref().take(8).collect();
    drop(child.kill());
    drop(child.wait());

    let topics = [
        "threadkeep ",
        "  Address",
        "  Store",
        "  Console",
        "  Docs",
        "  API keys",
        "  Link to the console",
    ];
    for (line, topic) in printed.iter().zip(topics) {
        assert!(line.starts_with(topic), "{printed:?}");
    }
    assert!(printed[1].contains("http://127.0.0.1:"), "{printed:?}");
    assert!(printed[2].contains("threads are lost"), "{printed:?}");
    assert!(printed[7].contains(" INFO "), "{printed:?}");
}

#[test]
fn unusable_arguments_and_settings_exit_with_2() {
    let mut unknown_variable = threadkeep(&[]);
    unknown_variable.env("THREADKEEP_LISTNE", "x");

    for (mut command, expected) in [
        (threadkeep(&["--listne", "x"]), "--listne"),
        (unknown_variable, "did you mean `listen`?"),
        (threadkeep(&["--config", "absent.toml"]), "absent.toml"),
        (threadkeep(&["--listen", "0.0.0.0:0"]), "signing_keys"),
        (threadkeep(&["--max-keys", "0"]), "max_keys"),
    ] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{expected}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn a_signal_stops_the_server_after_its_running_requests() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(threadkeep(&["--listen", "127.0.0.1:0"]));
        let idle = TcpStream::connect(&server.address).unwrap();
        let mut running = TcpStream::connect(&server.address).unwrap();
        let head = "PUT /v1/threads/current/state/a HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\
                    expect: 100-continue\r\n\r\n";
        running.write_all(head.as_bytes()).unwrap();
        let mut interim = [0; 25];
        running.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");

        server.signal(signal);
        // rejected connections show that the server has received the signal; only then send the rest of the body
        while TcpStream::connect(&server.address).is_ok() {
            std::thread::yield_now();
        }
        running.write_all(b"1").unwrap();

        let mut answer = String::new();
        running.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(server.child.wait().unwrap().success());
        drop(idle);
    }
}
