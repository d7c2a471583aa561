//! Opens a session for any front end: its options, its model, its sandbox and its log.

mod connected;
mod cut_off;
mod cut_off_plan;
mod error;
mod first_agent;
mod fixed_prompt;
mod handle;
mod kept;
mod logged;
mod model;
mod models;
mod open;
mod options;
mod past;
mod plan;
mod plan_files;
mod prepared;
mod record;
mod relay_settings;
mod relay_socket;
mod resumed;
mod rights_before;
mod root_fault;
mod step_changes;
mod sub_agents;
mod unheard;

pub(crate) use self::cut_off_plan::finished_steps;
pub(crate) use self::error::{OpenError, Refusal};
pub(crate) use self::handle::{Handle, NotTaken};
pub(crate) use self::open::{OpenedSession, SessionDirs, SessionEvents, open, open_prepared};
pub(crate) use self::options::{SessionOptions, for_activity, plan_options};
pub(crate) use self::past::Resume;
pub(crate) use self::plan::EarlierPlan;
pub(crate) use self::prepared::PreparedSession;
pub use self::prepared::observer;
pub(crate) use self::record::Record;
pub(crate) use self::relay_settings::{RelayWanted, relay_settings};
pub(crate) use self::relay_socket::{RelaySocketError, check as check_relay_socket};
pub(crate) use self::root_fault::places_to_create;
pub(crate) use self::unheard::unheard;
pub(crate) use crate::journal::session::find as find_log;

#[cfg(test)]
mod tests;
