//! The opening of a session, as every front end has it: its options, its model and its record.

mod model;
mod models;
mod open;
mod options;
mod record;
mod sub_agents;

pub(crate) use self::models::SettingsModels;
pub(crate) use self::open::{ACTIVITY, Busy, Events, Handle, OpenError, Place, Refusal, Session, open};
pub(crate) use self::options::SessionOptions;
pub(crate) use self::record::Record;
