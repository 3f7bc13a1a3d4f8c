//! The help texts. The flags of limits come from the table of limits.

use std::fmt::Write as _;

use espalier_server::limits;

use crate::arguments::Topic;

pub fn text(topic: Topic) -> String {
    match topic {
        Topic::Espalier => ESPALIER.to_string(),
        Topic::Tour => TOUR.replace("{patterns}", &crate::tour::names().join(", ")),
        Topic::Serve => {
            let mut text = SERVE.to_string();
            for limit in limits::ALL {
                let flag = format!("--{} N", limit.flag);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {flag:<34} {} (default {})", limit.doc, limit.default);
            }
            text
        }
    }
}

const ESPALIER: &str = "\
Espalier is a document database that speaks the MongoDB wire protocol and keeps data in shape.

Usage: espalier <command> [options]

Commands:
  serve           run the database server
  tour            walk through the patterns, measured on a private server
  help [command]  show this help, or that of a command

Options:
  -h, --help      show this help
  -V, --version   show the version

Examples:
  espalier serve                                        a database on 127.0.0.1:27017, data in ./espalier-data
  espalier serve --auth --listen 0.0.0.0:27017          reachable from other machines, for users only
  mongosh mongodb://127.0.0.1:27017/                    talk to it
  espalier tour                                         see what patterns do, in two minutes
";

const SERVE: &str = "\
Runs the database server until it is told to stop (Ctrl-C, SIGTERM, or the shutdown command).

Usage: espalier serve [options]

Options:
  --listen HOST:PORT       where to listen (default 127.0.0.1:27017); port 0 picks a free one
  --advertise HOST:PORT    the address to give to clients, if it is not the one they connect to
  --data FOLDER            where to keep the data (default ./espalier-data); created if it does not exist
  --auth                   clients have to authenticate; the first user is created from this machine
  --without-auth           listen beyond this machine although anyone may then do anything
  --cache-mib N            most memory for data read from disk (default a quarter of the machine's, at least 256)
  --tls-cert FILE          speak TLS, with this certificate (PEM); needs --tls-key
  --tls-key FILE           the private key that belongs to it
  --tls-ca FILE            clients have to show a certificate that this authority signed
  --tls-allow-no-client-cert   clients that show none are let in, too
  --replica-set NAME       the name of the one-member replica set (default espalier)
  --log-level LEVEL        error, warn, info (default) or debug; the log goes to stderr
  --log-format FORMAT      human (default) or json
  --metrics HOST:PORT      show metrics for Prometheus at http://HOST:PORT/metrics (default: nowhere)
  --enable-test-commands   allow configureFailPoint, for the tests of drivers
  -h, --help               show this help

Examples:
  espalier serve
  espalier serve --listen 127.0.0.1:0 --data /tmp/scratch
  espalier serve --log-format json --slow-ms 20
  espalier serve --metrics 127.0.0.1:9216

Limits:
";

const TOUR: &str = "\
Walks through the patterns: for each one the plain way and what it costs, the declaration, and the same statements again,
measured then and there. It starts a server of its own on a free port with its data in a temporary folder, and removes both.

Usage: espalier tour [options]

Options:
  --pattern NAME   one chapter alone: {patterns}
  --keep           leave the server running at the end, until Ctrl-C, and say how to connect
  --seed N         make another shop (default 1): the same seed makes the same data
  --scale X        how much data, from 0.01 to 10 (default 1)
  -h, --help       show this help

Colours and pauses are for terminals; NO_COLOR=1 turns colours off.

Examples:
  espalier tour
  espalier tour --pattern outlier
  espalier tour --pattern computed --keep
";
