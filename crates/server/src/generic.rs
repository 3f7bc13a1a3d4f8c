//! The fields that any command may carry beside its own: session, transaction, concerns, time limit, API version.

use espalier_value::number::Number;
use espalier_value::{Code, Elem, Error, RawDoc, Result, ValueRef};

use crate::fields::{self, Field};
use crate::sessions::Uid;

#[derive(Default)]
pub struct Generic<'a> {
    pub session: Option<AskedSession>,
    pub txn_number: Option<i64>,
    pub autocommit: Option<bool>,
    pub start_transaction: bool,
    pub max_time_ms: Option<u64>,
    pub comment: Option<ValueRef<'a>>,
    pub read_concern: Option<RawDoc<'a>>,
    /// As given; whether it is one is for the commands that take it.
    pub write_concern: Option<ValueRef<'a>>,
    /// The client asks for the stored documents and not for those that patterns make of them.
    pub raw_data: bool,
    pub api_version: bool,
    pub api_strict: bool,
    api_fields: bool,
}

/// A session as a client names it: mostly by its UUID alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AskedSession {
    pub id: [u8; 16],
    /// Whose it is, if that is not who asks.
    pub uid: Option<Uid>,
}

impl<'a> Generic<'a> {
    /// Takes a field that any command may carry; false if it is none.
    pub fn take(&mut self, elem: Elem<'a>) -> Result<bool> {
        let field = Field::new(elem, "OperationSessionInfo");
        match elem.name_bytes() {
            b"lsid" => self.session = parse_lsid(field)?,
            b"txnNumber" => {
                self.txn_number = match elem.value() {
                    ValueRef::Int64(n) => Some(n),
                    ValueRef::Null | ValueRef::Undefined => None,
                    _ => return Err(field.wrong_type("long")),
                }
            }
            b"autocommit" => self.autocommit = field.bool()?,
            b"startTransaction" => {
                self.start_transaction = field.bool()?.unwrap_or(false);
                if !self.start_transaction {
                    let message = "Specifying startTransaction=false is not allowed.";
                    return Err(Error::new(Code::InvalidOptions, message));
                }
            }
            b"maxTimeMS" | b"maxTimeMSOpOnly" => self.max_time_ms = Some(parse_max_time(elem)?),
            b"comment" => self.comment = Some(elem.value()),
            b"readConcern" => self.read_concern = Some(parse_read_concern(elem)?),
            b"writeConcern" => self.write_concern = Some(elem.value()),
            b"rawData" => self.raw_data = field.bool()?.unwrap_or(false),
            b"apiVersion" => {
                match field.str()? {
                    Some("1") | None => {}
                    Some(other) => {
                        let message = format!("Cannot accept API version {other}");
                        return Err(Error::new(Code::APIVersionError, message));
                    }
                }
                self.api_version = true;
            }
            b"apiStrict" => {
                self.api_strict = field.bool()?.unwrap_or(false);
                self.api_fields = true;
            }
            b"apiDeprecationErrors" => {
                field.bool()?;
                self.api_fields = true;
            }
            b"$readPreference" => check_read_preference(elem.value())?,
            b"$clusterTime"
            | b"$configTime"
            | b"$topologyTime"
            | b"$client"
            | b"$audit"
            | b"$configServerState"
            | b"$replData"
            | b"$oplogQueryData"
            | b"$queryOptions"
            | b"$tenant"
            | b"$maxTimeMS"
            | b"clientOperationKey"
            | b"coordinator"
            | b"databaseVersion"
            | b"shardVersion"
            | b"tracking_info"
            | b"mayBypassWriteBlocking" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What must hold between the fields.
    pub fn check(&self) -> Result<()> {
        let invalid = |message: &str| Err(Error::new(Code::InvalidOptions, message));
        if self.api_fields && !self.api_version {
            let message = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            return Err(Error::new(Code(4_886_600), message));
        }
        if self.start_transaction && self.autocommit.is_none() {
            return invalid("'startTransaction' field requires 'autocommit' field to also be specified");
        }
        if self.autocommit.is_some() && self.txn_number.is_none() {
            return invalid("'autocommit' field requires a transaction number to also be specified");
        }
        match self.txn_number {
            Some(_) if self.session.is_none() => {
                invalid("Transaction number requires a session ID to also be specified")
            }
            Some(n) if n < 0 => invalid("Transaction number cannot be negative"),
            _ if self.autocommit == Some(true) => invalid("Specifying autocommit=true is not allowed."),
            _ => Ok(()),
        }
    }
}

fn parse_lsid(field: Field<'_, '_>) -> Result<Option<AskedSession>> {
    field.doc()?.map(|doc| parse_session(doc, "OperationSessionInfo.lsid")).transpose()
}

/// A session id as clients write it: `{id: UUID(…)}`.
pub fn parse_session(doc: RawDoc<'_>, parent: &str) -> Result<AskedSession> {
    let (mut id, mut uid) = (None, None);
    for field in fields::fields(doc, parent)? {
        match field.name() {
            "id" => id = Some(parse_uuid(field)?),
            "uid" => uid = Some(parse_uid(&field)?),
            "txnNumber" | "txnUUID" => {
                let message = format!("{}: sessions within sessions are not supported by Espalier", field.path());
                return Err(Error::new(Code::InvalidOptions, message));
            }
            _ => return Err(field.unknown()),
        }
    }
    let id = id.ok_or_else(|| fields::missing(parent, "id"))?;
    Ok(AskedSession { id, uid })
}

/// The hash of a user's name.
pub fn parse_uid(field: &Field<'_, '_>) -> Result<Uid> {
    match field.value() {
        ValueRef::Binary(0, bytes) => {
            Uid::try_from(bytes).map_err(|_| Error::new(Code::UnsupportedFormat, "Unsupported SHA256Block hash length"))
        }
        ValueRef::Binary(..) => {
            let path = field.path();
            Err(Error::type_mismatch(format!("BSON field '{path}' is the wrong binData type, expected type 'general'")))
        }
        _ => Err(field.wrong_type("binData")),
    }
}

fn parse_uuid(field: Field<'_, '_>) -> Result<[u8; 16]> {
    match field.value() {
        ValueRef::Binary(4, bytes) => <[u8; 16]>::try_from(bytes)
            .map_err(|_| Error::new(Code::InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")),
        ValueRef::Binary(..) => {
            let path = field.path();
            Err(Error::type_mismatch(format!("BSON field '{path}' is the wrong binData type, expected type 'UUID'")))
        }
        _ => Err(field.wrong_type("binData")),
    }
}

fn parse_max_time(elem: Elem<'_>) -> Result<u64> {
    let name = elem.name();
    let Some(n) = Number::of(elem.value()) else {
        return Err(Error::bad_value(format!("{name} must be a number")));
    };
    let Some(ms) = n.as_exact_i64() else {
        return Err(Error::bad_value(format!("{name} has non-integral value")));
    };
    u64::try_from(ms)
        .ok()
        .filter(|ms| *ms <= i32::MAX as u64)
        .ok_or_else(|| Error::bad_value(format!("{ms} value for {name} is out of range")))
}

fn parse_read_concern(elem: Elem<'_>) -> Result<RawDoc<'_>> {
    let ValueRef::Document(doc) = elem.value() else {
        return Err(Error::failed_to_parse("readConcern field should be an object"));
    };
    for elem in doc {
        match (elem.name(), elem.value()) {
            ("level", ValueRef::String("local" | "majority" | "linearizable" | "available" | "snapshot")) => {}
            ("level", ValueRef::String(_)) => {
                return Err(Error::failed_to_parse(
                    "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
                ));
            }
            ("level", _) => return Err(Field::new(elem, "readConcern").wrong_type("string")),
            ("afterClusterTime" | "atClusterTime", ValueRef::Timestamp(_)) => {}
            ("afterClusterTime" | "atClusterTime", _) => {
                return Err(Field::new(elem, "readConcern").wrong_type("timestamp"));
            }
            (
                "afterOpTime" | "provenance" | "$allowTransactionTableSnapshot" | "$waitLastStableRecoveryTimestamp",
                _,
            ) => {}
            (other, _) => {
                let message = format!("Unrecognized option in readConcern: {other}");
                return Err(Error::new(Code::InvalidOptions, message));
            }
        }
    }
    Ok(doc)
}

fn check_read_preference(value: ValueRef<'_>) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        let message = format!("$readPreference has incorrect type: expected object but got {}", value.ty().name());
        return Err(Error::type_mismatch(message));
    };
    match doc.get("mode") {
        Some(ValueRef::String("primary" | "primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest")) => {
            Ok(())
        }
        None => Err(fields::missing("$readPreference", "mode")),
        Some(ValueRef::String(other)) => Err(Error::bad_value(format!(
            "Could not parse $readPreference mode '{other}'. Only the modes 'primary', 'primaryPreferred', 'secondary', \
             'secondaryPreferred', and 'nearest' are supported."
        ))),
        Some(_) => Err(Error::type_mismatch("$readPreference mode must be a string")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::{DocBuf, doc};

    fn take(doc: &DocBuf) -> Result<Generic<'_>> {
        let mut generic = Generic::default();
        for elem in doc.as_raw() {
            assert!(generic.take(elem)?, "{} is not generic", elem.name());
        }
        generic.check()?;
        Ok(generic)
    }

    #[test]
    fn sessions_and_transactions_are_checked_together() {
        let id = [7u8; 16];
        let lsid = doc! { "id": ValueRef::Binary(4, &id) };
        let retryable = doc! { "lsid": &lsid, "txnNumber": 3i64 };
        let generic = take(&retryable).unwrap();
        assert_eq!((generic.session, generic.txn_number), (Some(AskedSession { id, uid: None }), Some(3)));
        let code = |doc: &DocBuf| take(doc).err().unwrap().code();
        assert_eq!(code(&doc! { "txnNumber": 3i64 }), Code::InvalidOptions);
        assert_eq!(code(&doc! { "txnNumber": 3, "lsid": &lsid }), Code::TypeMismatch);
        assert_eq!(code(&doc! { "autocommit": false }), Code::InvalidOptions);
        assert_eq!(code(&doc! { "startTransaction": true }), Code::InvalidOptions);
        assert_eq!(code(&doc! { "lsid": &doc! { "id": 1 } }), Code::TypeMismatch);
        assert_eq!(code(&doc! { "lsid": &doc! {} }), Code(40414));
        let inner = doc! { "id": ValueRef::Binary(4, &id), "txnUUID": ValueRef::Binary(4, &id) };
        assert_eq!(code(&doc! { "lsid": &inner }), Code::InvalidOptions);
        let short = doc! { "id": ValueRef::Binary(4, &id), "uid": ValueRef::Binary(0, &id) };
        assert_eq!(code(&doc! { "lsid": &short }), Code::UnsupportedFormat);
        assert_eq!(code(&doc! { "maxTimeMS": -1 }), Code::BadValue);
        assert_eq!(code(&doc! { "maxTimeMS": 1.5 }), Code::BadValue);
        assert_eq!(code(&doc! { "apiStrict": true }), Code(4_886_600));
        assert_eq!(code(&doc! { "apiVersion": "2" }), Code::APIVersionError);
        assert_eq!(code(&doc! { "readConcern": &doc! { "level": "x" } }), Code::FailedToParse);
    }
}
