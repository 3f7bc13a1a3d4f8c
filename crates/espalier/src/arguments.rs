//! Parsing of the command line into what is to be done.

use std::ffi::OsString;
use std::path::PathBuf;

use espalier_server::log::{Format, Level};
use espalier_server::{Options, TlsFiles, limits};
use lexopt::prelude::*;

use crate::tour::{self, Tour};

pub enum Command {
    Help(Topic),
    Version,
    Serve(Box<Serve>),
    Tour(Tour),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    Espalier,
    Serve,
    Tour,
}

/// What `espalier serve` was told.
#[derive(Debug)]
pub struct Serve {
    pub data: PathBuf,
    /// Upper bound of the block cache; `None` for a share of the machine's memory.
    pub cache_bytes: Option<u64>,
    pub options: Options,
}

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let argv = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let argv: Vec<String> = std::iter::once("espalier".to_string()).chain(argv).collect();
    let mut parser = lexopt::Parser::from_args(arguments);
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help(Topic::Espalier)),
        Some(Short('V') | Long("version")) => Ok(Command::Version),
        Some(Value(name)) => match name.to_str() {
            Some("serve") => parse_serve(parser, argv),
            Some("tour") => parse_tour(parser),
            Some("help") => Ok(Command::Help(help_topic(&mut parser)?)),
            _ => Err(format!("unknown command '{}'", name.to_string_lossy()).into()),
        },
        Some(other) => Err(other.unexpected()),
    }
}

fn help_topic(parser: &mut lexopt::Parser) -> Result<Topic, lexopt::Error> {
    match parser.next()? {
        None => Ok(Topic::Espalier),
        Some(Value(name)) if name == "serve" => Ok(Topic::Serve),
        Some(Value(name)) if name == "tour" => Ok(Topic::Tour),
        Some(Value(name)) => Err(format!("there is no command '{}'", name.to_string_lossy()).into()),
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_serve(mut parser: lexopt::Parser, argv: Vec<String>) -> Result<Command, lexopt::Error> {
    let mut data = PathBuf::from("./espalier-data");
    let mut cache_bytes = None;
    let mut options = Options { argv, ..Options::default() };
    let mut without_auth = false;
    let (mut certificate, mut key, mut authority, mut allow_no_client_cert) = (None, None, None, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help(Topic::Serve)),
            Long("listen") => options.listen = parser.value()?.string()?,
            Long("advertise") => options.advertise = Some(parser.value()?.string()?),
            Long("data") => data = parser.value()?.into(),
            Long("cache-mib") => {
                let mib = parser.value()?.parse::<u64>()?;
                let bytes = mib.checked_mul(1 << 20).filter(|&bytes| bytes > 0);
                cache_bytes = Some(bytes.ok_or("--cache-mib must be at least 1 and fit into memory")?);
            }
            Long("replica-set") => options.set_name = parser.value()?.string()?,
            Long("log-level") => options.log_level = choice(&mut parser, "--log-level", &Level::NAMES)?,
            Long("log-format") => options.log_format = choice(&mut parser, "--log-format", &Format::NAMES)?,
            Long("metrics") => options.metrics = Some(parser.value()?.string()?),
            Long("enable-test-commands") => options.test_commands = true,
            Long("auth") => options.auth = true,
            Long("without-auth") => without_auth = true,
            Long("tls-cert") => certificate = Some(PathBuf::from(parser.value()?)),
            Long("tls-key") => key = Some(PathBuf::from(parser.value()?)),
            Long("tls-ca") => authority = Some(PathBuf::from(parser.value()?)),
            Long("tls-allow-no-client-cert") => allow_no_client_cert = true,
            Long(flag) => match limits::ALL.iter().find(|limit| limit.flag == flag) {
                Some(limit) => {
                    let value = parser.value()?.parse::<u64>()?;
                    if value == 0 {
                        return Err(format!("--{} must be at least 1", limit.flag).into());
                    }
                    if value > limit.most {
                        return Err(format!("--{} must be at most {}", limit.flag, limit.most).into());
                    }
                    limit.set(&mut options.limits, value);
                }
                None => return Err(argument.unexpected()),
            },
            other => return Err(other.unexpected()),
        }
    }
    // A port alone is a convenient thing to type.
    if options.listen.parse::<u16>().is_ok() {
        options.listen = format!("127.0.0.1:{}", options.listen);
    }
    options.tls = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key, authority, allow_no_client_cert }),
        (None, None) if authority.is_none() && !allow_no_client_cert => None,
        _ => return Err("TLS needs both --tls-cert and --tls-key".into()),
    };
    if allow_no_client_cert && options.tls.as_ref().is_some_and(|tls| tls.authority.is_none()) {
        return Err("--tls-allow-no-client-cert says nothing without --tls-ca".into());
    }
    if options.auth && without_auth {
        return Err("--auth and --without-auth contradict each other".into());
    }
    if !options.auth && !without_auth && !is_loopback(&options.listen) {
        let message = format!(
            "listening on {} lets everyone who reaches this machine read and change the data: add --auth (see \
             docs/security.md), or --without-auth if that is intended",
            options.listen
        );
        return Err(message.into());
    }
    options.data = data.to_string_lossy().into_owned();
    Ok(Command::Serve(Box::new(Serve { data, cache_bytes, options })))
}

fn parse_tour(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut tour = Tour { pattern: None, keep: false, seed: 1, scale: 1.0 };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help(Topic::Tour)),
            Long("pattern") => {
                let given = parser.value()?.string()?;
                if !tour::names().contains(&given.as_str()) {
                    return Err(format!("--pattern is one of {}, not '{given}'", tour::names().join(", ")).into());
                }
                tour.pattern = Some(given);
            }
            Long("keep") => tour.keep = true,
            Long("seed") => tour.seed = parser.value()?.parse()?,
            Long("scale") => {
                tour.scale = parser.value()?.parse()?;
                if !(0.01..=10.0).contains(&tour.scale) {
                    return Err("--scale must be from 0.01 to 10".into());
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Tour(tour))
}

/// Whether an address can be reached from this machine alone. A name that cannot be looked up counts as not.
fn is_loopback(listen: &str) -> bool {
    use std::net::ToSocketAddrs;
    let addresses: Vec<_> = listen.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    !addresses.is_empty() && addresses.iter().all(|address| address.ip().to_canonical().is_loopback())
}

fn choice<T: Copy>(parser: &mut lexopt::Parser, flag: &str, choices: &[(&str, T)]) -> Result<T, lexopt::Error> {
    let given = parser.value()?.string()?;
    match choices.iter().find(|(name, _)| *name == given) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Err(format!("{flag} is one of {}, not '{given}'", names.join(", ")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn serve(arguments: &[&str]) -> Result<Serve, String> {
        let all = std::iter::once("serve").chain(arguments.iter().copied()).map(OsString::from);
        match parse(all) {
            Ok(Command::Serve(serve)) => Ok(*serve),
            Ok(_) => Err("not serve".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_limit_has_its_flag() {
        for limit in limits::ALL {
            let serve = serve(&[&format!("--{}", limit.flag), "7"]).unwrap();
            assert_eq!(limit.get(&serve.options.limits), 7);
        }
        assert!(serve(&["--max-connections", "0"]).is_err());
        assert!(serve(&["--max-connections", "many"]).is_err());
        assert!(serve(&["--max-document-bytes", "16777217"]).unwrap_err().contains("at most 16777216"));
    }

    #[test]
    fn a_tour_is_told_what_to_show() {
        let tour = |arguments: &[&str]| match parse(["tour"].iter().chain(arguments).map(OsString::from)) {
            Ok(Command::Tour(tour)) => Ok(tour),
            Ok(_) => Err("not a tour".to_string()),
            Err(error) => Err(error.to_string()),
        };
        let told = tour(&["--pattern", "outlier", "--keep", "--seed", "7", "--scale=0.5"]).unwrap();
        assert_eq!((told.pattern.as_deref(), told.keep, told.seed, told.scale), (Some("outlier"), true, 7, 0.5));
        assert!(tour(&[]).unwrap().pattern.is_none());
        assert!(tour(&["--pattern", "nonsense"]).unwrap_err().contains("computed"));
        for wrong in ["--scale=0", "--scale=NaN", "--seed=x", "--nonsense"] {
            assert!(tour(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nobody_listens_to_the_world_by_accident() {
        for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:27017"] {
            assert!(serve(&["--listen", open]).unwrap_err().contains("--without-auth"), "{open}");
            assert!(serve(&["--listen", open, "--auth"]).unwrap().options.auth);
            assert!(!serve(&["--listen", open, "--without-auth"]).unwrap().options.auth);
        }
        for local in ["127.0.0.1:0", "localhost:0", "[::1]:0", "127.1.2.3:0", "0"] {
            assert!(serve(&["--listen", local]).is_ok(), "{local}");
        }
        assert!(serve(&["--auth", "--without-auth"]).is_err());
        assert!(serve(&["--tls-cert", "c", "--tls-key", "k"]).unwrap().options.tls.is_some());
        for half in ["--tls-cert=c", "--tls-key=k", "--tls-ca=a", "--tls-allow-no-client-cert"] {
            assert!(serve(&[half]).is_err(), "{half}");
        }
    }

    #[test]
    fn flags_are_understood_and_mistakes_are_not() {
        let told = serve(&["--listen", "0", "--data", "/x", "--log-level=debug", "--log-format", "json"]).unwrap();
        assert_eq!(told.options.listen, "127.0.0.1:0");
        assert_eq!(told.data, PathBuf::from("/x"));
        assert_eq!((told.options.log_level, told.options.log_format), (Level::Debug, Format::Json));
        assert_eq!(told.cache_bytes, None);
        assert_eq!(serve(&["--cache-mib", "64"]).unwrap().cache_bytes, Some(64 << 20));
        assert!(serve(&["--cache-mib", "0"]).is_err());
        assert!(serve(&["--nonsense"]).unwrap_err().contains("nonsense"));
        assert!(serve(&["--log-level", "loud"]).unwrap_err().contains("error, warn, info, debug"));
        assert!(parse([OsString::from("nonsense")]).is_err());
        assert!(matches!(parse([]), Ok(Command::Help(Topic::Espalier))));
    }
}
