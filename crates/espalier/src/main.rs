//! `espalier`: the command line.

mod arguments;
mod cache_size;
mod help;
mod memory;
mod serve;
mod tour;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The caller made a mistake on the command line.
const USAGE: u8 = 2;
/// What was asked for could not be done.
const FAILURE: u8 = 1;

fn main() -> ExitCode {
    let command = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("espalier: {error}\nTry 'espalier --help'.");
            return ExitCode::from(USAGE);
        }
    };
    let result = match command {
        arguments::Command::Help(topic) => {
            print!("{}", help::text(topic));
            Ok(())
        }
        arguments::Command::Version => {
            println!("espalier {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        arguments::Command::Serve(options) => serve::run(*options),
        arguments::Command::Tour(options) => tour::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("espalier: {error}");
            ExitCode::from(FAILURE)
        }
    }
}
