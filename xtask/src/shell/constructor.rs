//! The words of the syntax: literals such as `true` and constructors such as `ObjectId("…")`.

use std::str::FromStr;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, JavaScriptCodeWithScope, Regex, Timestamp, doc};

use super::parse::Parser;
use crate::error::{Context, Result, err};

impl Parser<'_> {
    /// A literal or a constructor, by its name.
    pub(super) fn word(&mut self) -> Result<Bson> {
        let word = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '$');
        match word {
            "true" => Ok(Bson::Boolean(true)),
            "false" => Ok(Bson::Boolean(false)),
            "null" => Ok(Bson::Null),
            "undefined" => Ok(Bson::Undefined),
            "NaN" => Ok(Bson::Double(f64::NAN)),
            "Infinity" => Ok(Bson::Double(f64::INFINITY)),
            "MinKey" => self.without_arguments(Bson::MinKey),
            "MaxKey" => self.without_arguments(Bson::MaxKey),
            "i" => self.index.map(Bson::Int32).ok_or_else(|| self.error("`i` means something only inside repeat()")),
            "new" => {
                self.space();
                self.word()
            }
            "repeat" => self.repeat(),
            "reply" => self.reply(),
            "session" => self.session(),
            "" => Err(self.error("a value is missing")),
            name => {
                self.space();
                self.expect('(')?;
                let arguments = self.arguments()?;
                construct(name, arguments).map_err(|error| self.error(&error.0))
            }
        }
    }

    fn without_arguments(&mut self, value: Bson) -> Result<Bson> {
        if self.take('(') {
            self.space();
            self.expect(')')?;
        }
        Ok(value)
    }

    fn arguments(&mut self) -> Result<Vec<Bson>> {
        let mut arguments = Vec::new();
        loop {
            self.space();
            if self.take(')') {
                return Ok(arguments);
            }
            arguments.push(self.value()?);
            self.space();
            if !self.take(',') {
                self.expect(')')?;
                return Ok(arguments);
            }
        }
    }

    /// `repeat(150, {_id: i})`: an array of values, in which `i` counts from zero.
    fn repeat(&mut self) -> Result<Bson> {
        self.expect('(')?;
        let times = self.integer()?;
        self.space();
        self.expect(',')?;
        let (start, outer) = (self.at, self.index);
        let mut values = Vec::new();
        for index in 0..times.max(1) {
            self.at = start;
            self.index = Some(i32::try_from(index).map_err(|_| self.error("too many repetitions"))?);
            values.push(self.value()?);
        }
        self.index = outer;
        self.space();
        self.take(',');
        self.space();
        self.expect(')')?;
        values.truncate(usize::try_from(times).unwrap_or(0));
        Ok(Bson::Array(values))
    }

    /// `reply(1).cursor.id`: a value out of the reply to an earlier command.
    fn reply(&mut self) -> Result<Bson> {
        let number = self.numbered()?;
        let mut value = self.environment.reply(number).ok_or_else(|| self.error("there is no such reply"))?;
        while self.take('.') {
            let name = self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '$');
            let inner = match &value {
                Bson::Document(document) => document.get(name).cloned(),
                Bson::Array(items) => name.parse::<usize>().ok().and_then(|at| items.get(at).cloned()),
                _ => None,
            };
            value = inner.ok_or_else(|| self.error(&format!("the reply has no {name} here")))?;
        }
        Ok(value)
    }

    fn session(&mut self) -> Result<Bson> {
        let number = self.numbered()?;
        self.environment.session(number).ok_or_else(|| self.error("there are no sessions here"))
    }

    fn numbered(&mut self) -> Result<usize> {
        self.expect('(')?;
        let number = self.integer()?;
        self.space();
        self.expect(')')?;
        usize::try_from(number).map_err(|_| self.error("a negative number"))
    }
}

fn construct(name: &str, arguments: Vec<Bson>) -> Result<Bson> {
    let wrong = || err!("{name}({arguments:?}) cannot be read");
    Ok(match (name, arguments.as_slice()) {
        ("NumberInt" | "Int32", [number]) => Bson::Int32(i32::try_from(integer(number)?).context(name)?),
        ("NumberLong" | "Long", [number]) => Bson::Int64(integer(number)?),
        ("NumberDecimal" | "Decimal128", [number]) => {
            let text = match number {
                Bson::String(text) => text.clone(),
                Bson::Int32(number) => number.to_string(),
                Bson::Int64(number) => number.to_string(),
                _ => return Err(wrong()),
            };
            Bson::Decimal128(Decimal128::from_str(&text).map_err(|_| wrong())?)
        }
        ("Double", [number]) => Bson::Double(match number {
            Bson::Int32(number) => f64::from(*number),
            Bson::Int64(number) => *number as f64,
            Bson::Double(number) => *number,
            Bson::String(text) => text.parse()?,
            _ => return Err(wrong()),
        }),
        ("ObjectId", []) => Bson::ObjectId(ObjectId::new()),
        ("ObjectId", [Bson::String(hex)]) => Bson::ObjectId(ObjectId::parse_str(hex)?),
        ("ISODate" | "Date", []) => Bson::DateTime(DateTime::now()),
        ("ISODate" | "Date", [Bson::String(text)]) => Bson::DateTime(date(text)?),
        ("ISODate" | "Date", [millis @ (Bson::Int32(_) | Bson::Int64(_))]) => {
            Bson::DateTime(DateTime::from_millis(integer(millis)?))
        }
        ("Timestamp", [time, increment]) => timestamp(time, increment)?,
        ("Timestamp", [Bson::Document(parts)]) => match (parts.get("t"), parts.get("i")) {
            (Some(time), Some(increment)) => timestamp(time, increment)?,
            _ => return Err(wrong()),
        },
        ("BinData", [subtype, Bson::String(base64)]) => {
            let subtype = BinarySubtype::from(u8::try_from(integer(subtype)?).map_err(|_| wrong())?);
            Bson::Binary(Binary::from_base64(base64, subtype)?)
        }
        ("HexData", [subtype, Bson::String(hex)]) => {
            let subtype = BinarySubtype::from(u8::try_from(integer(subtype)?).map_err(|_| wrong())?);
            Bson::Binary(Binary { subtype, bytes: hex_bytes(hex).ok_or_else(wrong)? })
        }
        ("UUID", [Bson::String(text)]) => Bson::Binary(Binary::from_uuid(bson::Uuid::parse_str(text)?)),
        ("RegExp", [Bson::String(pattern)]) => regex(pattern, "")?,
        ("RegExp", [Bson::String(pattern), Bson::String(options)]) => regex(pattern, options)?,
        ("Code", [Bson::String(code)]) => Bson::JavaScriptCode(code.clone()),
        ("Code", [Bson::String(code), Bson::Document(scope)]) => {
            Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: code.clone(), scope: scope.clone() })
        }
        ("Symbol" | "BSONSymbol", [Bson::String(symbol)]) => Bson::Symbol(symbol.clone()),
        ("DBRef", [Bson::String(collection), id]) => doc! { "$ref": collection, "$id": id.clone() }.into(),
        ("DBRef", [Bson::String(collection), id, Bson::String(db)]) => {
            doc! { "$ref": collection, "$id": id.clone(), "$db": db }.into()
        }
        ("DBPointer", [Bson::String(namespace), Bson::ObjectId(id)]) => db_pointer(namespace, *id)?,
        _ => return Err(wrong()),
    })
}

pub(super) fn regex(pattern: &str, options: &str) -> Result<Bson> {
    let convert = |text: &str| bson::raw::CString::try_from(text.to_owned());
    Ok(Bson::RegularExpression(Regex { pattern: convert(pattern)?, options: convert(options)? }))
}

fn integer(value: &Bson) -> Result<i64> {
    match value {
        Bson::Int32(number) => Ok((*number).into()),
        Bson::Int64(number) => Ok(*number),
        Bson::Double(number) if number.fract() == 0.0 => Ok(*number as i64),
        Bson::String(text) => Ok(text.parse()?),
        other => Err(err!("{other} is not an integer")),
    }
}

/// An ISO date; the time and the zone may be left out, as in mongosh.
fn date(text: &str) -> Result<DateTime> {
    let mut full = text.to_owned();
    if !full.contains('T') {
        full.push_str("T00:00:00");
    }
    let zone_at = full.find('T').unwrap_or(0);
    if !full[zone_at..].contains(['Z', '+', '-']) {
        full.push('Z');
    }
    DateTime::parse_rfc3339_str(&full).context(format!("{text} is not a date"))
}

fn timestamp(time: &Bson, increment: &Bson) -> Result<Bson> {
    let part = |value| u32::try_from(integer(value)?).context("a timestamp has two 32-bit parts");
    Ok(Bson::Timestamp(Timestamp { time: part(time)?, increment: part(increment)? }))
}

fn hex_bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

/// The `bson` crate keeps the parts of a DBPointer to itself, so one is made from its bytes.
fn db_pointer(namespace: &str, id: ObjectId) -> Result<Bson> {
    let mut bytes = vec![0, 0, 0, 0, 0x0C, b'p', 0];
    bytes.extend_from_slice(&i32::try_from(namespace.len() + 1)?.to_le_bytes());
    bytes.extend_from_slice(namespace.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&id.bytes());
    bytes.push(0);
    let length = i32::try_from(bytes.len())?.to_le_bytes();
    bytes[..4].copy_from_slice(&length);
    let mut document = bson::Document::from_reader(bytes.as_slice())?;
    document.remove("p").ok_or_else(|| err!("the DBPointer was not read back"))
}
