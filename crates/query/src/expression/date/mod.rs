//! Dates: one file each operator, listed in order of name.

use super::operator::Operator;

pub(super) mod civil;
mod date_add;
mod date_arithmetic;
mod date_diff;
mod date_from_parts;
mod date_from_string;
mod date_part;
mod date_subtract;
mod date_to_parts;
mod date_to_string;
pub(super) mod date_trunc;
mod day_of_month;
mod day_of_week;
mod day_of_year;
mod format;
mod hour;
mod iso_day_of_week;
mod iso_week;
mod iso_week_year;
mod millisecond;
mod minute;
mod month;
pub(super) mod parse_date;
mod second;
pub(crate) mod time_unit;
mod ts_increment;
mod ts_second;
pub(super) mod unit;
mod week;
mod year;
pub(super) mod zone;

pub(super) static ALL: &[&Operator] = &[
    &date_add::DATE_ADD,
    &date_diff::DATE_DIFF,
    &date_from_parts::DATE_FROM_PARTS,
    &date_from_string::DATE_FROM_STRING,
    &date_subtract::DATE_SUBTRACT,
    &date_to_parts::DATE_TO_PARTS,
    &date_to_string::DATE_TO_STRING,
    &date_trunc::DATE_TRUNC,
    &day_of_month::DAY_OF_MONTH,
    &day_of_week::DAY_OF_WEEK,
    &day_of_year::DAY_OF_YEAR,
    &hour::HOUR,
    &iso_day_of_week::ISO_DAY_OF_WEEK,
    &iso_week::ISO_WEEK,
    &iso_week_year::ISO_WEEK_YEAR,
    &millisecond::MILLISECOND,
    &minute::MINUTE,
    &month::MONTH,
    &second::SECOND,
    &ts_increment::TS_INCREMENT,
    &ts_second::TS_SECOND,
    &week::WEEK,
    &year::YEAR,
];
