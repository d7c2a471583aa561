//! The sessions of a project, in pages, the newest first.

use std::io;
use std::path::Path;

use agent_client_protocol_schema::v1::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use jiff::Timestamp;
use protocol::rpc::{ErrorObject, ErrorWord};

use crate::journal::sessions::{Index, ListedSession};

/// Maximum number of sessions on a page.
const PAGE: usize = 50;

/// Returns one page of the sessions of the project that the request names. Blocks the thread.
pub(super) fn page(state: &Path, request: &ListSessionsRequest) -> Result<ListSessionsResponse, ErrorObject> {
    let failed =
        |error: io::Error| ErrorWord::InternalError.because(format!("cannot list the sessions: {error}"));
    let sessions = Index::open(state).sessions().map_err(failed)?;
    let wanted = request.cwd.as_ref().map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
    let is_wanted = |one: &ListedSession| {
        wanted.as_ref().is_none_or(|cwd| one.summary.project.as_path() == cwd)
            && one.summary.project.as_path().to_str().is_some()
    };
    let newest = sessions.into_iter().rev().filter(is_wanted).filter_map(|one| Some((id(&one)?, one)));
    let mut rest = newest.collect::<Vec<_>>().into_iter();
    if let Some(cursor) = &request.cursor
        && !rest.by_ref().any(|(id, _)| id == *cursor)
    {
        return Err(
            ErrorWord::InvalidParams.because("cursor: the session that the cursor names no longer exists")
        );
    }
    let page: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = page.last().filter(|_| rest.len() > 0).map(|(id, _)| id.clone());
    let page = page.into_iter().map(|(id, one)| {
        let updated = Timestamp::try_from(one.changed).ok().map(|time| time.to_string());
        SessionInfo::new(id, one.summary.project.as_path())
            .title(super::shown::title(&one.summary.message))
            .updated_at(updated)
    });
    Ok(ListSessionsResponse::new(page.collect()).next_cursor(next))
}

fn id(session: &ListedSession) -> Option<String> {
    Some(session.log.file_stem()?.to_str()?.to_owned())
}
