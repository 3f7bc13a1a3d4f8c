//! The binary as a user starts it: what it prints, how it ends, and with which exit code.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn espalier(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    espalier(arguments).output().unwrap()
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("espalier-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Running {
    child: Child,
    address: String,
    printed: Vec<String>,
}

fn serve(data: &Path) -> Running {
    let mut child = espalier(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]).spawn().unwrap();
    let mut printed = Vec::new();
    let mut address = None;
    for line in BufReader::new(child.stdout.as_mut().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, uri)) = line.split_once("listening: mongodb://") {
            address = Some(uri.trim_end_matches('/').to_string());
        }
        let last = line.starts_with("Connect with");
        printed.push(line);
        if last {
            break;
        }
    }
    Running { child, address: address.unwrap(), printed }
}

impl Running {
    /// Sends a command's bytes and returns the reply's.
    fn ask(&self, body: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        message.extend_from_slice(&(21 + body.len() as i32).to_le_bytes());
        for part in [1i32, 0, 2013, 0] {
            message.extend_from_slice(&part.to_le_bytes());
        }
        message.push(0);
        message.extend_from_slice(body);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(&message).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut rest = vec![0; i32::from_le_bytes(length) as usize - 4];
        stream.read_exact(&mut rest).unwrap();
        rest
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `{<name>: 1, $db: "admin"}`.
fn command(name: &str) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.push(0x10);
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(&[0, 1, 0, 0, 0]);
    body.extend_from_slice(b"\x02$db\0\x06\0\0\0admin\0\0");
    let length = body.len() as i32;
    body[..4].copy_from_slice(&length.to_le_bytes());
    body
}

#[test]
fn help_and_version_are_printed() {
    for arguments in [&["--help"][..], &["help"], &[], &["serve", "--help"], &["help", "serve"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Usage:") && text.contains("Examples:"), "{arguments:?}: {text}");
    }
    let version = run(&["--version"]);
    assert_eq!(String::from_utf8(version.stdout).unwrap().trim(), concat!("espalier ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn mistakes_on_the_command_line_are_named() {
    for (arguments, expected) in [
        (&["nonsense"][..], "unknown command 'nonsense'"),
        (&["serve", "--nonsense"], "--nonsense"),
        (&["serve", "--log-level", "loud"], "error, warn, info, debug"),
        (&["serve", "--max-connections", "x"], "x"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let data = Folder::new("stop");
    for signal in ["-TERM", "-INT"] {
        let mut running = serve(data.path());
        assert!(running.printed.iter().any(|line| line.contains("mongosh \"mongodb://127.0.0.1:")));
        assert!(!running.ask(&command("ping")).is_empty());
        assert_eq!(running.signal(signal), Some(0));
    }
    let mut running = serve(data.path());
    assert!(!running.printed.iter().any(|line| line.contains("Recovered")), "{:?}", running.printed);
    running.ask(&command("shutdown"));
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_data_folder_in_use_is_refused() {
    let data = Folder::new("lock");
    let _running = serve(data.path());
    let output = run(&["serve", "--listen", "127.0.0.1:0", "--data", data.text()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(data.text()) && text.contains("another"), "{text}");
}

#[test]
fn an_address_in_use_is_refused() {
    let (first, second) = (Folder::new("address-1"), Folder::new("address-2"));
    let running = serve(first.path());
    let output = run(&["serve", "--listen", &running.address, "--data", second.text()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("cannot listen on"), "{text}");
}

#[test]
fn what_was_recovered_is_said() {
    let data = Folder::new("recovered");
    let mut running = serve(data.path());
    // {create: "c", $db: "test"}
    let create = b"\x21\0\0\0\x02create\0\x02\0\0\0c\0\x02$db\0\x05\0\0\0test\0\0";
    assert_eq!(create.len(), 0x21);
    running.ask(create);
    running.signal("-KILL");
    let running = serve(data.path());
    assert!(running.printed.iter().any(|line| line.starts_with("Recovered")), "{:?}", running.printed);
}
