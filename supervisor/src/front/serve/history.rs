use std::path::Path;

use ipc::id::{AgentId, EventId};
use protocol::rpc::{ErrorObject, ErrorWord, HistoryParams, HistoryResponse, Notification, NotificationForm};

use crate::journal::session::read_page;

/// Default number of events on a page.
const USUAL: u32 = 200;

const MOST: u32 = 1000;

/// Number of bytes of the log after which a page ends. A page with only one event may be longer.
const BYTES: usize = 1 << 20;

/// Returns one page of the events in a session log. Blocks the thread.
pub(super) fn page(log: &Path, params: &HistoryParams) -> Result<HistoryResponse, ErrorObject> {
    let failed = |error: String| ErrorWord::InternalError.because(error);
    let most = params.limit.unwrap_or(USUAL).clamp(1, MOST);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let after = params.after.unwrap_or(EventId(0));
    let page = read_page(log, after, most, BYTES).map_err(|error| failed(error.to_string()))?;
    let is_wanted = |agent: &AgentId| params.agent.as_ref().is_none_or(|wanted| wanted == agent);
    let events = page.events.into_iter().filter(|event| is_wanted(&event.agent));
    let events = events.map(|event| Notification::Logged(Box::new(event)).params(NotificationForm::Generic));
    let events = events.collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))?;
    Ok(HistoryResponse { events, next: page.next })
}
