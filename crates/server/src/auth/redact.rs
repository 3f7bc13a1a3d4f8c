//! Commands as they may be shown: in the log, in `currentOp`, in errors. What could be a secret is not in them.

use espalier_value::{DocBuf, RawDoc, ValueRef};

/// In place of a value.
const HIDDEN: &str = "xxx";

/// The fields of a command that hold secrets.
fn secrets(command: &str) -> &'static [&'static str] {
    match command {
        "createUser" | "updateUser" => &["pwd"],
        "saslStart" | "saslContinue" => &["payload"],
        "authenticate" => &["nonce", "key", "pwd"],
        "hello" | "isMaster" | "ismaster" => &["speculativeAuthenticate"],
        _ => &[],
    }
}

/// The command without its secrets; `None` if it has none.
pub fn redact(body: RawDoc<'_>) -> Option<DocBuf> {
    let first = body.first()?;
    if let ("explain", ValueRef::Document(inner)) = (first.name(), first.value()) {
        let inner = redact(inner)?;
        let mut out = DocBuf::new();
        out.append("explain", &inner);
        body.iter().skip(1).for_each(|elem| {
            out.append_elem(elem);
        });
        return Some(out);
    }
    let secrets = secrets(first.name());
    if secrets.is_empty() || !body.iter().any(|elem| secrets.contains(&elem.name())) {
        return None;
    }
    let mut out = DocBuf::new();
    for elem in body {
        if secrets.contains(&elem.name()) {
            out.append(elem.name(), HIDDEN)
        } else {
            out.append_elem(elem)
        };
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::doc;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let create = doc! { "createUser": "u", "pwd": "geheim", "roles": 1 };
        assert_eq!(redact(create.as_raw()).unwrap(), doc! { "createUser": "u", "pwd": "xxx", "roles": 1 });
        let explained = doc! { "explain": &create, "verbosity": "queryPlanner" };
        assert!(!format!("{:?}", redact(explained.as_raw()).unwrap()).contains("geheim"));
        for (command, field) in [("saslStart", "payload"), ("hello", "speculativeAuthenticate"), ("updateUser", "pwd")]
        {
            let mut body = DocBuf::new();
            body.append(command, 1).append(field, &doc! { "p": "geheim" });
            assert!(!format!("{:?}", redact(body.as_raw()).unwrap()).contains("geheim"), "{command}");
        }
        assert!(redact(doc! { "find": "c", "filter": 1 }.as_raw()).is_none());
    }
}
