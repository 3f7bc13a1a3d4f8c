//! Espalier itself, built by cargo and run as users run it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{Killable, Owned, Secure, Server, TemporaryFolder, wait_for_ping};
use crate::error::{Context, Result, err};

/// Which build of Espalier to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    Debug,
    Release,
}

/// A running Espalier with a data folder of its own.
#[derive(Debug)]
pub struct Espalier {
    port: u16,
    binary: PathBuf,
    arguments: Vec<String>,
    /// No file may become larger than this.
    file_kib_max: Option<u64>,
    process: Option<Owned>,
    folder: TemporaryFolder,
}

impl Espalier {
    /// Starts one on an empty folder and waits until it answers.
    pub fn start(build: Build, folder: TemporaryFolder) -> Result<Espalier> {
        Espalier::start_with(build, folder, &[])
    }

    /// Starts one with further arguments of `serve`.
    pub fn start_with(build: Build, folder: TemporaryFolder, arguments: &[&str]) -> Result<Espalier> {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server =
            Espalier { port: 0, binary: binary(build)?, arguments, file_kib_max: None, process: None, folder };
        server.launch()?;
        Ok(server)
    }

    /// As [`Espalier::start_with`], with TLS: whoever pings would have to encrypt.
    fn start_encrypted(binary: PathBuf, folder: TemporaryFolder, arguments: Vec<String>) -> Result<Espalier> {
        let mut server = Espalier { port: 0, binary, arguments, file_kib_max: None, process: None, folder };
        server.start_process()?;
        let mut process = server.process.take().ok_or_else(|| err!("it was not started"))?;
        let stdout = process.0.stdout.take().ok_or_else(|| err!("no standard output"))?;
        server.port = announced_port(stdout).map_err(|error| err!("espalier: {error}\n{}", server.log()))?;
        server.process = Some(process);
        Ok(server)
    }

    fn launch(&mut self) -> Result<()> {
        self.start_process()?;
        let mut process = self.process.take().ok_or_else(|| err!("it was not started"))?;
        let stdout = process.0.stdout.take().ok_or_else(|| err!("no standard output"))?;
        self.port = announced_port(stdout).map_err(|error| err!("espalier: {error}\n{}", self.log()))?;
        let started = wait_for_ping(self.port, &mut process.0);
        self.process = Some(process);
        started.map(drop).map_err(|error| err!("espalier: {error}\n{}", self.log()))
    }

    fn start_process(&mut self) -> Result<()> {
        // After a restart the same port is asked for again, so that clients find the server where it was.
        let mut command = match self.file_kib_max {
            None => Command::new(&self.binary),
            Some(kib) => {
                // A write beyond the limit fails, as one on a full disk does, instead of ending the process.
                let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
                let mut command = Command::new("bash");
                command.arg("-c").arg(script).arg(&self.binary);
                command
            }
        };
        command.arg("serve").arg("--listen").arg(format!("127.0.0.1:{}", self.port));
        command.arg("--data").arg(self.folder.path().join("data")).args(&self.arguments);
        let log = std::fs::File::options().create(true).append(true).open(self.folder.path().join("stderr"))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        self.process = Some(Owned(child.context(self.binary.display())?));
        Ok(())
    }

    /// From the next start on no file may become larger than this, as if the disk were full.
    pub fn limit_files(&mut self, kib: Option<u64>) {
        self.file_kib_max = kib;
    }

    /// Where its files are.
    pub fn files(&self) -> &TemporaryFolder {
        &self.folder
    }

    /// Ends it and hands out its files.
    pub fn into_folder(mut self) -> TemporaryFolder {
        self.kill();
        self.folder
    }

    /// The last lines that it wrote to standard error.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Server for Espalier {
    fn name(&self) -> &'static str {
        "espalier"
    }
    fn port(&self) -> u16 {
        self.port
    }
    fn process_id(&self) -> u32 {
        self.process.as_ref().map_or(0, |process| process.0.id())
    }
    fn secure(&self) -> Result<Secure> {
        Secure::start(|certificates| {
            let file = |name: &str| certificates.join(name).display().to_string();
            let (certificate, key, authority) = (file("server.pem"), file("server.key"), file("ca.pem"));
            let flags = ["--auth", "--tls-cert", &certificate, "--tls-key", &key, "--tls-ca", &authority];
            let arguments = flags.into_iter().map(str::to_owned).collect();
            let folder = TemporaryFolder::in_memory("secure")?;
            Ok(Box::new(Espalier::start_encrypted(self.binary.clone(), folder, arguments)?))
        })
    }
}

impl Killable for Espalier {
    fn kill(&mut self) {
        self.process = None;
    }
    fn spawn(&mut self) -> Result<()> {
        self.kill();
        self.start_process()
    }
    fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        self.process.take().ok_or_else(|| err!("it does not run"))?.wait(timeout)
    }
    fn restart(&mut self) -> Result<()> {
        self.kill();
        self.launch()
    }
    fn folder(&self) -> &TemporaryFolder {
        &self.folder
    }
    fn keep_data(&mut self) -> PathBuf {
        self.folder.keep()
    }
}

/// Builds the `espalier` binary and says where it is; `$ESPALIER_BINARY` names one that is already built.
pub fn binary(build: Build) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ESPALIER_BINARY") {
        return Ok(PathBuf::from(path));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "espalier", "--message-format", "json-render-diagnostics"]);
    if build == Build::Release {
        command.arg("--release");
    }
    let output = command.current_dir(crate::root()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(err!("espalier does not build"));
    }
    // Cargo says where it put the binary, whatever the target folder is.
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines()
        .filter(|line| line.contains("\"name\":\"espalier\""))
        .filter_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'))
        .map(|(path, _)| PathBuf::from(path))
        .next_back()
        .ok_or_else(|| err!("cargo did not say where the espalier binary is"))
}

/// Waits for the line that names `mongodb://127.0.0.1:<port>/` and goes on reading the rest, so that the server never
/// waits for somebody to read what it prints.
fn announced_port(stdout: ChildStdout) -> Result<u16> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            let port = line.split_once("mongodb://127.0.0.1:").map(|(_, rest)| {
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                digits.parse::<u16>()
            });
            if let Some(Ok(port)) = port {
                // Nobody listens any more once the first port has been read.
                sender.send(port).ok();
            }
        }
    });
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(port) => Ok(port),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(err!("ended before it printed its address")),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(err!("did not print its address within 60 seconds")),
    }
}
