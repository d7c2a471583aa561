//! The opening of a session, as every front end has it: its options, its model and its record.

mod model;
mod open;
mod record;

pub(crate) use self::model::ModelOptions;
pub(crate) use self::open::{
    ACTIVITY, Busy, Events, Handle, OpenError, Place, Refusal, Session, SessionOptions, open,
};
pub(crate) use self::record::Record;
