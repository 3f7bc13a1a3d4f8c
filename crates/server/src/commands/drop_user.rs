//! `dropUser`: removes a user.

use espalier_value::doc;

use super::prelude::*;
use crate::auth::directory::{USERS, change};
use crate::auth::names::UserName;
use crate::auth::request::name_argument;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "dropUser",
    doc: "Drops a user.",
    privilege: Privilege::Database(&[Action::DropUser]),
    writes: true,
    run: drop_user,
    ..Command::BASE
};

fn drop_user(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("dropUser")?;
    let name = UserName::new(name_argument(request, "dropUser")?, request.db);
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        if directory.delete(&USERS, doc! { "_id": &name.id() }.as_raw())? == 0 {
            return Err(Error::new(Code::UserNotFound, format!("User '{name}' not found")));
        }
        Ok(())
    })
}
