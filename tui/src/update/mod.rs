//! What each message changes.

use std::time::Duration;

use crate::message::{Action, Msg};
use crate::model::Model;
use crate::moment::Moment;

/// Changes the model by one message that came at a moment, and says what is to be done outside.
pub fn update(model: &mut Model, at: Moment, message: Msg) -> Vec<Action> {
    let _ = (model, at, message);
    Vec::new()
}

/// How long after `now` a [`Msg::Tick`] is wanted; none while nothing on the screen changes by itself.
pub fn next_tick(model: &Model, now: Moment) -> Option<Duration> {
    let _ = (model, now);
    None
}
