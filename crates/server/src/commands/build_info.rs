//! `buildInfo`: which version of MongoDB the server is compatible with, and which Espalier it is.

use super::prelude::*;
use crate::reply::strings;

pub(super) static COMMAND: Command = Command {
    name: "buildInfo",
    aliases: &["buildinfo"],
    doc: "Says which MongoDB version the server speaks, and its own.",
    privilege: Privilege::Public,
    run: build_info,
    ..Command::BASE
};

/// The MongoDB version whose behaviour this server follows.
pub(crate) const MONGODB_VERSION: &str = "6.0.5";

fn build_info(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let max_document = call.server.options.limits.document_bytes_max;
    let reply = &mut call.reply;
    reply.append("version", MONGODB_VERSION);
    reply.doc("espalier").append("version", env!("CARGO_PKG_VERSION"));
    reply.append("gitVersion", "");
    reply.array("modules");
    reply.append("allocator", "mimalloc");
    reply.append("javascriptEngine", "none");
    reply.append("sysInfo", "deprecated");
    {
        let mut parts = reply.array("versionArray");
        for part in MONGODB_VERSION.split('.').chain(["0"]) {
            parts.push(part.parse::<i32>().unwrap_or(0));
        }
    }
    reply.doc("openssl").append("running", "none").append("compiled", "none");
    reply
        .doc("buildEnvironment")
        .append("target_arch", std::env::consts::ARCH)
        .append("target_os", std::env::consts::OS);
    reply.append("bits", i32::try_from(usize::BITS).unwrap_or(64));
    reply.append("debug", cfg!(debug_assertions));
    reply.append("maxBsonObjectSize", max_document as i32);
    strings(&mut reply.array("storageEngines"), ["espalier"]);
    Ok(())
}
