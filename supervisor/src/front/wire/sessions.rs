//! Opens sessions with the settings from a request.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate::activity::Activity;
use model::provider::ProviderKind;
use protocol::network_words::{NetworkWordError, too_wide};
use protocol::own_command::OwnCommand;
use protocol::rpc::{ErrorObject, ErrorWord, NewConversationParams};

use super::conversations::{OpenConversation, OpenedConversation, StartAccess};
use super::settings;
use crate::engine::driver::{Models, Turns};
use crate::engine::opening::{self, OpenError, Resume, SessionDirs, SessionOptions, find_log, for_activity};
use crate::engine::place::{ConfinementOptions, Leftovers, SetupError};
use crate::journal::session::LogError;
use crate::process::directories::Directories;
use crate::settings::config::Sources;

/// Opens sessions, all with the keys and directories of this process.
pub(in crate::front) struct Sessions {
    place: SessionDirs,
    /// Name by which messages refer to the front end's options.
    origin: &'static str,
}

impl Sessions {
    pub(in crate::front) const fn new(place: SessionDirs, origin: &'static str) -> Self {
        Self { place, origin }
    }
}

impl OpenConversation for Sessions {
    fn open(&self, params: NewConversationParams, shows: bool) -> Result<OpenedConversation, ErrorObject> {
        let (mut options, commands) = options(&self.place.directories, &params, self.origin)?;
        if let Some(resume) = &mut options.resume {
            resume.shows = shows;
        }
        let start = start_access(&options);
        let models = options.models.clone().map(|models| models as Arc<dyn Models>);
        let (session, handle, events) =
            opening::open(options, self.place.clone(), Instant::now()).map_err(|error| refusal(&error))?;
        let (log, prompts) = (session.log_path().to_owned(), session.prompts().to_vec());
        let run = async move { session.run().await.map(drop).map_err(|error| error.to_string()) };
        Ok(OpenedConversation { handle, events, log, models, prompts, commands, start, run: Box::pin(run) })
    }
}

/// Returns the access that the options give, and the models that can be chosen.
fn start_access(options: &SessionOptions) -> StartAccess {
    let can_be_chosen =
        |name: &String| options.models.as_ref().is_some_and(|models| models.choose(name).is_ok());
    let mut models = vec![options.model.name.clone()];
    for name in options.agent_models.iter().filter(|name| can_be_chosen(name)) {
        if !models.contains(name) {
            models.push(name.clone());
        }
    }
    StartAccess { mode: options.mode, net: options.wanted.net.clone(), models }
}

fn options(
    directories: &Directories,
    params: &NewConversationParams,
    origin: &'static str,
) -> Result<(SessionOptions, Vec<OwnCommand>), ErrorObject> {
    let refused = |why: String| Err(ErrorWord::OptionRefused.because(why));
    let directory = PathBuf::from(params.cwd.clone());
    if !directory.is_absolute() {
        return refused(format!("cwd: {} is not an absolute path", directory.display()));
    }
    if let Some(name) = params.env.iter().find(|name| name.contains('=')) {
        return refused(format!("env: {name:?} has a value: send only the names of variables"));
    }
    if let Some(name) = params.provider.as_deref().filter(|name| ProviderKind::named(name).is_none()) {
        let known = ProviderKind::ALL.map(ProviderKind::as_str).join(", ");
        return refused(format!("provider: {name:?} is not one of {known}"));
    }
    if let Some(rule) = params.net.as_ref().and_then(too_wide) {
        return refused(format!("net: {}", NetworkWordError::Suffix(rule.to_string())));
    }
    let sources =
        Sources::read(directories, &directory).map_err(|error| ErrorWord::OptionRefused.because(error))?;
    let activity = params.activity.unwrap_or(Activity::Execute);
    let asked = for_activity(settings::of_request(params, origin), &sources, activity);
    let effective = sources.effective(&asked);
    let (tier, degraded) = (params.tier.unwrap_or_default(), params.allow_degraded.unwrap_or_default());
    let leftovers = params.baseline.map_or(Leftovers::Refuse, |word| Leftovers::All(word.into()));
    let wanted = ConfinementOptions { leftovers, ..ConfinementOptions::of(&effective, tier, degraded) };
    let mut options = SessionOptions::new(&effective, directory, wanted, Turns::Many);
    if let Some(seconds) = params.approval_timeout_s {
        options.approvals.timeout = Duration::from_secs(seconds);
    }
    options.activity = activity;
    if let Some(name) = &params.resume {
        let log = find_log(&directories.sessions(), Some(name), params.cwd.as_path());
        let log = log.map_err(|why| ErrorWord::OptionRefused.because(format!("resume: {why}")))?;
        options.resume = Some(Resume { log, shows: true, forks: params.fork });
    }
    options.notices = sources.notices(&effective, &asked);
    Ok((options.choosing_from(sources, asked), effective.commands))
}

fn refusal(error: &OpenError) -> ErrorObject {
    let word = match error {
        OpenError::Setup(SetupError::Project(_) | SetupError::TooMuchHidden(_)) => ErrorWord::ProjectRefused,
        OpenError::Setup(SetupError::Path { .. } | SetupError::Env(_))
        | OpenError::Model(_)
        | OpenError::RelaySocket(_)
        | OpenError::OtherProject(_)
        | OpenError::Log(LogError::Held { .. } | LogError::Broken { .. }) => ErrorWord::OptionRefused,
        OpenError::Setup(
            SetupError::Programs { .. }
            | SetupError::Temp(_)
            | SetupError::Leftovers(_)
            | SetupError::System(_),
        ) => ErrorWord::SandboxUnavailable,
        OpenError::Key(_) => ErrorWord::NoKey,
        OpenError::Provider(_) => ErrorWord::ProviderRefused,
        OpenError::Setup(SetupError::Directories(_))
        | OpenError::Patch(_)
        | OpenError::Record(_)
        | OpenError::Log(_)
        | OpenError::System(_) => ErrorWord::InternalError,
    };
    let other_way = if error.is_open_elsewhere() { ", or use fork to continue in a copy" } else { "" };
    let message = in_request(&error.to_string()) + other_way;
    word.because(error.code().map_or_else(|| message.clone(), |code| code.mark(&message)))
}

/// Rewrites the hint of an error for a client, which sends fields instead of flags: `-C` becomes `cwd`.
fn in_request(text: &str) -> String {
    match text.split_once("\n  hint: ") {
        Some((cause, hint)) if hint.contains("-C ") => format!("{cause}\n  hint: name the project in cwd"),
        Some((cause, hint)) => format!("{cause}\n  hint: {}", hint.replace("--base-url", "base_url")),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_what_a_request_has() {
        let refused = OpenError::OtherProject("/p".into());
        assert_eq!(
            refusal(&refused).message,
            "the session belongs to the project /p\n  hint: name the project in cwd"
        );
        assert_eq!(in_request("x\n  hint: chmod a+x /p"), "x\n  hint: chmod a+x /p");
        let held = refusal(&LogError::Held { path: "/p".into(), holder: None }.into()).message;
        assert!(
            held.ends_with("\n  hint: end the session there, or use fork to continue in a copy"),
            "{held}"
        );
    }
}
