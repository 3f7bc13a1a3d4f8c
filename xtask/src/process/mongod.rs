//! The reference mongod.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bson::doc;

use super::{Killable, Owned, Secure, Server, TemporaryFolder, free_port, wait_for_listening, wait_for_ping};
use crate::error::{Context, Error, Result, err};
use crate::fetch;

/// How the reference is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A replica set of one member, as Espalier presents itself.
    ReplicaSet,
    /// One server without an oplog.
    Standalone,
}

/// A running mongod with a data folder of its own.
#[derive(Debug)]
pub struct Mongod {
    port: u16,
    topology: Topology,
    arguments: Vec<String>,
    process: Option<Owned>,
    folder: TemporaryFolder,
}

impl Mongod {
    /// Starts one on an empty folder and waits until it takes writes.
    pub fn start(topology: Topology, folder: TemporaryFolder) -> Result<Mongod> {
        let mut server = Mongod { port: free_port()?, topology, arguments: Vec::new(), process: None, folder };
        server.launch()?;
        if topology == Topology::ReplicaSet {
            let host = format!("127.0.0.1:{}", server.port);
            let config = doc! { "_id": "rs0", "members": [{ "_id": 0, "host": host }] };
            server.connect()?.must("admin", &doc! { "replSetInitiate": config })?;
        }
        server.wait_for_primary()?;
        Ok(server)
    }

    fn launch(&mut self) -> Result<()> {
        self.start_process()?;
        let mut process = self.process.take().ok_or_else(|| err!("it was not started"))?;
        let started = wait_for_ping(self.port, &mut process.0);
        self.process = Some(process);
        started.map(drop).map_err(|error| {
            let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(3).collect();
            Error(format!("mongod: {error}\n{}", last.join("\n")))
        })
    }

    fn start_process(&mut self) -> Result<()> {
        let binary = fetch::mongod()?;
        let log = self.folder.path().join("log");
        let mut command = Command::new(&binary);
        command
            .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--wiredTigerCacheSizeGB", "1", "--quiet"])
            .args([
                "--setParameter",
                "diagnosticDataCollectionEnabled=false",
                "--setParameter",
                "ttlMonitorSleepSecs=3600",
            ])
            .args(["--port", &self.port.to_string()])
            .arg("--dbpath")
            .arg(self.folder.path())
            .arg("--logpath")
            .arg(&log)
            .args(&self.arguments);
        if self.topology == Topology::ReplicaSet {
            command.args(["--replSet", "rs0"]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.process = Some(Owned(child.context(binary.display())?));
        Ok(())
    }

    fn wait_for_primary(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut client = self.connect()?;
        while !client.run("admin", &doc! { "hello": 1 })?.get_bool("isWritablePrimary").unwrap_or(false) {
            if Instant::now() > deadline {
                return Err(err!("mongod did not become primary"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Server for Mongod {
    fn name(&self) -> &'static str {
        "mongod"
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
            let (both, authority) = (file("server.both"), file("ca.pem"));
            let flags =
                ["--auth", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &both, "--tlsCAFile", &authority];
            let arguments = flags.into_iter().map(str::to_owned).collect();
            let folder = TemporaryFolder::in_memory("secure")?;
            // A replica set would want to be initiated, over TLS.
            let topology = Topology::Standalone;
            let mut server = Mongod { port: free_port()?, topology, arguments, process: None, folder };
            server.start_process()?;
            if let Some(process) = &mut server.process {
                wait_for_listening(server.port, &mut process.0)?;
            }
            Ok(Box::new(server))
        })
    }
}

impl Killable for Mongod {
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
        self.launch()?;
        self.wait_for_primary()
    }
    fn folder(&self) -> &TemporaryFolder {
        &self.folder
    }
    fn keep_data(&mut self) -> PathBuf {
        self.folder.keep()
    }
}
