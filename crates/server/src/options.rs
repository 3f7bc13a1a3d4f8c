//! How a server is to run: what the flags of `espalier serve` say.

use std::path::PathBuf;

use espalier_wire::Compression;

use crate::limits::Limits;
use crate::log::{Format, Level};

#[derive(Clone, Debug)]
pub struct Options {
    /// `host:port`; port 0 picks a free one.
    pub listen: String,
    /// `host:port` to give to clients in `hello`, instead of the address they came in at.
    pub advertise: Option<String>,
    /// The name of the one-member replica set.
    pub set_name: String,
    /// Speak TLS, and nothing else.
    pub tls: Option<TlsFiles>,
    /// Clients have to say who they are, and may do what their roles allow.
    pub auth: bool,
    pub limits: Limits,
    pub log_level: Level,
    pub log_format: Format,
    /// `host:port` of the metrics page, if there is to be one.
    pub metrics: Option<String>,
    /// `configureFailPoint` and friends.
    pub test_commands: bool,
    pub compressors: Vec<Compression>,
    /// What was said on the command line, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// The data folder, for `getCmdLineOpts`.
    pub data: String,
}

/// Where the certificates are, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's own, with those between it and its authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Clients have to show a certificate that one of these signed.
    pub authority: Option<PathBuf>,
    /// Those that show none are let in, too.
    pub allow_no_client_cert: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: "127.0.0.1:27017".into(),
            advertise: None,
            set_name: "espalier".into(),
            tls: None,
            auth: false,
            limits: Limits::default(),
            log_level: Level::Info,
            log_format: Format::Human,
            metrics: None,
            test_commands: false,
            compressors: vec![Compression::Snappy, Compression::Zstd, Compression::Zlib],
            argv: vec!["espalier".into(), "serve".into()],
            data: "./espalier-data".into(),
        }
    }
}
