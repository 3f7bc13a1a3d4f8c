//! The BSON types: their bytes, their names (`$type` aliases) and their place in BSON's cross-type order.

/// A BSON type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Type {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    DateTime = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    JavaScript = 0x0D,
    Symbol = 0x0E,
    JavaScriptWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl Type {
    pub const ALL: [Type; 21] = [
        Type::Double,
        Type::String,
        Type::Document,
        Type::Array,
        Type::Binary,
        Type::Undefined,
        Type::ObjectId,
        Type::Bool,
        Type::DateTime,
        Type::Null,
        Type::Regex,
        Type::DbPointer,
        Type::JavaScript,
        Type::Symbol,
        Type::JavaScriptWithScope,
        Type::Int32,
        Type::Timestamp,
        Type::Int64,
        Type::Decimal,
        Type::MaxKey,
        Type::MinKey,
    ];

    pub fn from_byte(byte: u8) -> Option<Type> {
        Type::ALL.into_iter().find(|t| *t as u8 == byte)
    }

    /// The number `$type` takes: -1 for MinKey, the byte otherwise.
    pub fn number(self) -> i32 {
        if self == Type::MinKey { -1 } else { self as i32 }
    }

    /// The alias that `$type` takes and error messages use.
    pub fn name(self) -> &'static str {
        match self {
            Type::Double => "double",
            Type::String => "string",
            Type::Document => "object",
            Type::Array => "array",
            Type::Binary => "binData",
            Type::Undefined => "undefined",
            Type::ObjectId => "objectId",
            Type::Bool => "bool",
            Type::DateTime => "date",
            Type::Null => "null",
            Type::Regex => "regex",
            Type::DbPointer => "dbPointer",
            Type::JavaScript => "javascript",
            Type::Symbol => "symbol",
            Type::JavaScriptWithScope => "javascriptWithScope",
            Type::Int32 => "int",
            Type::Timestamp => "timestamp",
            Type::Int64 => "long",
            Type::Decimal => "decimal",
            Type::MinKey => "minKey",
            Type::MaxKey => "maxKey",
        }
    }

    /// Rank in the cross-type order; types of one rank compare by value. Also the tag byte of an encoded key.
    #[inline]
    pub fn rank(self) -> u8 {
        match self {
            Type::MinKey => 1,
            Type::Undefined => 3,
            Type::Null => 5,
            Type::Double | Type::Int32 | Type::Int64 | Type::Decimal => 10,
            Type::String | Type::Symbol => 15,
            Type::Document => 20,
            Type::Array => 25,
            Type::Binary => 30,
            Type::ObjectId => 35,
            Type::Bool => 40,
            Type::DateTime => 45,
            Type::Timestamp => 47,
            Type::Regex => 50,
            Type::DbPointer => 55,
            Type::JavaScript => 60,
            Type::JavaScriptWithScope => 65,
            Type::MaxKey => 127,
        }
    }
}
