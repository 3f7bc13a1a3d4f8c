//! What nearly every command's file needs.

pub(super) use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

pub(super) use super::{Command, Place, Privilege};
pub(super) use crate::auth::{Action, Rights};
pub(super) use crate::call::Call;
pub(super) use crate::request::Request;
