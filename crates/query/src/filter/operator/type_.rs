//! `$type`: the value is of one of the named types. An array matches by its elements too.

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Code, Collator, DocBuf, Error, Result, Type, ValueRef};

use super::{Operator, Place};
use crate::context::Context;
use crate::filter::parse::Field;
use crate::filter::{Bounds, Node, Predicate, brackets};

pub(super) const TYPE: Operator =
    Operator { name: "$type", place: Place::Field(parse), doc: "Values of the given BSON types, by name or number." };

fn parse(field: &Field<'_>) -> Result<Node> {
    let types = TypeSet::parse(field.path, field.argument)?;
    Ok(field.leaf(OfType { types }))
}

/// A set of BSON types. `number` is all four numeric ones, and remembered as such.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypeSet {
    types: Vec<Type>,
    number: bool,
}

impl TypeSet {
    /// One type or an array of them, as names or numbers.
    pub fn parse(path: &str, argument: ValueRef<'_>) -> Result<TypeSet> {
        let mut set = TypeSet::default();
        match argument {
            ValueRef::Array(array) => {
                for one in array.iter() {
                    set.add(one)?;
                }
                if array.is_empty() {
                    return Err(Error::failed_to_parse(format!("{path} must match at least one type")));
                }
            }
            one => set.add(one)?,
        }
        Ok(set)
    }

    fn add(&mut self, one: ValueRef<'_>) -> Result<()> {
        match one {
            ValueRef::String(name) => self.add_name(name),
            _ => {
                let number = Number::of(one)
                    .ok_or_else(|| Error::type_mismatch("type must be represented as a number or a string"))?;
                self.add_code(number)
            }
        }
    }

    fn add_code(&mut self, number: Number) -> Result<()> {
        let code = number.as_exact_i64();
        if code == Some(0) {
            return Err(Error::bad_value("Invalid numerical type code: 0. Instead use {$exists:false}."));
        }
        let found = Type::ALL.into_iter().find(|ty| code == Some(i64::from(ty.number())));
        let ty = found.ok_or_else(|| {
            Error::bad_value(format!("Invalid numerical type code: {}", super::integer::show(number.to_value())))
        })?;
        self.insert(ty);
        Ok(())
    }

    /// Adds a type by its alias.
    pub fn add_name(&mut self, name: &str) -> Result<()> {
        if name == "number" {
            self.number = true;
            return Ok(());
        }
        if name == "missing" {
            return Err(Error::bad_value(
                "'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.",
            ));
        }
        let ty = Type::ALL.into_iter().find(|ty| ty.name() == name);
        self.insert(ty.ok_or_else(|| Error::new(Code::BadValue, format!("Unknown type name alias: {name}")))?);
        Ok(())
    }

    pub fn insert(&mut self, ty: Type) {
        if !self.types.contains(&ty) {
            self.types.push(ty);
        }
    }

    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        (self.number && value.is_number()) || self.types.contains(&value.ty())
    }

    /// The only type, if there is one; `number` counts as double.
    pub fn single(&self) -> Option<Type> {
        match (self.number, &self.types[..]) {
            (true, []) => Some(Type::Double),
            (false, [only]) => Some(*only),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct OfType {
    types: TypeSet,
}

impl Predicate for OfType {
    fn name(&self) -> &'static str {
        "$type"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        Ok(value.is_some_and(|value| self.types.contains(value)))
    }

    fn bounds(&self, _: Collator<'_>) -> Option<Bounds> {
        let mut intervals = Vec::new();
        let mut exact = true;
        if self.types.number {
            intervals.push(brackets::interval(Type::Double.rank()));
        }
        for ty in &self.types.types {
            match ty {
                // Arrays have keys for their elements only.
                Type::Array => return Some(Bounds::everything()),
                // Of several types in one bracket the key does not tell which; null stands for missing, undefined
                // for an empty array.
                Type::Double | Type::Int32 | Type::Int64 | Type::Decimal => exact &= self.types.number,
                Type::String | Type::Symbol | Type::Null | Type::Undefined => exact = false,
                _ => {}
            }
            intervals.push(brackets::interval(ty.rank()));
        }
        Some(if exact { Bounds::exact(intervals) } else { Bounds::inexact(intervals) })
    }

    fn describe(&self, out: &mut DocBuf) {
        let mut list = ArrayBuf::new();
        if self.types.number {
            list.push("number");
        }
        for ty in &self.types.types {
            list.push(ty.number());
        }
        out.append("$type", &list);
    }
}
