//! Write concerns: how safe a write must be before it is acknowledged.
//!
//! One member, so `majority` is that member. The default waits until the write is on disk, as MongoDB's does; only a
//! client that says `{w: 1, j: false}` or `{w: 0}` is answered earlier.

use espalier_store::CommitToken;
use espalier_value::number::Number;
use espalier_value::{Code, Error, RawDoc, Result, Value, ValueRef};

use crate::call::Call;
use crate::fields::{self, Field};
use crate::net;
use crate::request::Request;

#[derive(Debug)]
pub struct WriteConcern {
    w: Value<'static>,
    journal: Option<bool>,
    wtimeout: i64,
    given: bool,
}

/// MongoDB's limit for members of a replica set.
const MEMBERS_MAX: i64 = 50;

impl WriteConcern {
    pub fn of(request: &Request<'_>) -> Result<WriteConcern> {
        let default = WriteConcern { w: Value::string("majority"), journal: None, wtimeout: 0, given: false };
        match request.generic.write_concern {
            None => Ok(default),
            Some(ValueRef::Document(doc)) if doc.is_empty() => Ok(default),
            Some(ValueRef::Document(doc)) => WriteConcern::parse(doc),
            Some(other) => Err(Error::type_mismatch(format!(
                "\"writeConcern\" had the wrong type. Expected object, found {}",
                other.ty().name()
            ))),
        }
    }

    fn parse(doc: RawDoc<'_>) -> Result<WriteConcern> {
        let mut concern = WriteConcern { w: Value::Ref(ValueRef::Int32(1)), journal: None, wtimeout: 0, given: true };
        for field in fields::fields(doc, "WriteConcernOptions")? {
            match field.name() {
                "w" => concern.w = parse_w(&field)?,
                "j" => concern.journal = field.bool_or_number()?,
                "fsync" => concern.journal = field.bool_or_number()?.filter(|fsync| *fsync).or(concern.journal),
                "wtimeout" => concern.wtimeout = Number::of(field.value()).map_or(0, Number::to_i64_clamped),
                "provenance" | "getLastError" | "wElectionId" | "wOpTime" => {}
                _ => return Err(field.unknown()),
            }
        }
        Ok(concern)
    }

    fn waits(&self) -> bool {
        match self.w.or_null() {
            ValueRef::String(_) => self.journal != Some(false),
            w => match Number::of(w).map(Number::to_i64_clamped) {
                Some(0) => self.journal == Some(true),
                Some(1) => self.journal != Some(false),
                _ => true,
            },
        }
    }

    /// What this replica set of one cannot promise.
    fn unsatisfiable(&self) -> Option<(Code, String)> {
        match self.w.or_null() {
            ValueRef::String("majority") => None,
            ValueRef::String(mode) => Some((
                Code::UnknownReplWriteConcern,
                format!("No write concern mode named '{mode}' found in replica set configuration"),
            )),
            w if Number::of(w).is_some_and(|n| n.to_i64_clamped() > 1) => {
                Some((Code::UnsatisfiableWriteConcern, "Not enough data-bearing nodes".into()))
            }
            _ => None,
        }
    }

    /// Waits until the write is as safe as asked, and says so in the reply if it cannot be.
    pub fn fulfil(&self, call: &mut Call<'_>, commit: CommitToken) -> Result<()> {
        // In a transaction nothing is promised before its commit.
        if call.transaction.is_some() {
            return Ok(());
        }
        if self.waits() {
            net::step_aside();
            call.server.store.wait_durable(commit)?;
        }
        if let Some((code, message)) = self.unsatisfiable() {
            let mut error = call.reply.doc("writeConcernError");
            error.append("code", code.0).append("codeName", &code.name()).append("errmsg", &message);
            let mut info = error.doc("errInfo");
            let mut shown = info.doc("writeConcern");
            shown.append_value("w", &self.w);
            if let Some(journal) = self.journal {
                shown.append("j", journal);
            }
            shown.append("wtimeout", i32::try_from(self.wtimeout).unwrap_or(i32::MAX));
            shown.append("provenance", if self.given { "clientSupplied" } else { "implicitDefault" });
        }
        Ok(())
    }
}

fn parse_w(field: &Field<'_, '_>) -> Result<Value<'static>> {
    match field.value() {
        ValueRef::String(mode) => Ok(Value::string(mode)),
        value => match Number::of(value).map(Number::to_i64_clamped) {
            Some(n) if (0..=MEMBERS_MAX).contains(&n) => Ok(Value::Ref(ValueRef::Int32(n as i32))),
            Some(n) => Err(Error::failed_to_parse(format!(
                "w has to be a non-negative number and not greater than {MEMBERS_MAX}; found: {n}"
            ))),
            None if value.is_nullish() => Ok(Value::Ref(ValueRef::Int32(1))),
            None => Err(Error::failed_to_parse(format!(
                "w has to be a number, string, or object; found: {}",
                value.ty().name()
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::doc;

    #[test]
    fn only_who_asks_for_it_is_answered_before_the_disk() {
        let waits = |doc: espalier_value::DocBuf| WriteConcern::parse(doc.as_raw()).unwrap().waits();
        assert!(waits(doc! { "w": "majority" }));
        assert!(waits(doc! { "w": 1 }));
        assert!(waits(doc! { "w": 1, "j": true }));
        assert!(waits(doc! { "w": 0, "j": true }));
        assert!(!waits(doc! { "w": 1, "j": false }));
        assert!(!waits(doc! { "w": 0 }));
        assert!(!waits(doc! { "w": "majority", "j": false }));
    }

    #[test]
    fn what_one_member_cannot_promise_is_said() {
        let code = |doc: espalier_value::DocBuf| {
            WriteConcern::parse(doc.as_raw()).map(|c| c.unsatisfiable().map(|(code, _)| code)).map_err(|e| e.code())
        };
        assert_eq!(code(doc! { "w": 1 }), Ok(None));
        assert_eq!(code(doc! { "w": 2 }), Ok(Some(Code::UnsatisfiableWriteConcern)));
        assert_eq!(code(doc! { "w": "x" }), Ok(Some(Code::UnknownReplWriteConcern)));
        assert_eq!(code(doc! { "w": 51 }), Err(Code::FailedToParse));
        assert_eq!(code(doc! { "x": 1 }), Err(Code(40415)));
    }
}
