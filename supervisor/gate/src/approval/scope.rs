//! Scopes of approvals that last for the session: the later actions that they cover.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use ipc::effect::{Effect, Exec};
use ipc::path::WirePath;
use ipc::rights::{Grant, Hosts, Network, RightsChange};
use protocol::approval::{AskKind, SessionScope};

use super::Subject;
use super::in_project::in_project;
use crate::judgement::command_line::{begins_a_part, check_prefix, covers};
use crate::judgement::path_pattern::PathPattern;
use crate::judgement::{Ask, StandingRights};
use crate::tools::{ExternalCall, FetchCall};

const MISFIT: &str = "this approval for the session does not match the request";

const SPAWN: &str = "a sub-agent's access is approved once, never for the session";

const PLAN: &str = "a plan is approved once, never for the session";

/// Scope of an approval that lasts for the session.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Covered actions run without a request, each in a one-shot worker.
    Remembered(Vec<Covered>),
    /// As `Remembered`, and the person's settings keep the approval for later sessions of the project.
    Kept {
        setting: KeptSetting,
        covered: Vec<Covered>,
    },
    Standing(RightsChange),
}

/// Approval that the person's settings keep for a project.
#[derive(Clone, Debug)]
pub enum KeptSetting {
    Tool(Box<ExternalCall>),
    Prefixes(Vec<Vec<String>>),
}

/// Kind of actions that an approval covers.
#[derive(Clone, Debug)]
pub enum Covered {
    Command(Box<Exec>),
    /// Changes of exactly these files.
    Files(BTreeSet<WirePath>),
    /// Commands of which each part begins with `words`, in the directory and with the access of `like`.
    Prefix {
        words: Vec<String>,
        like: Box<Exec>,
    },
    /// Changes of files whose paths match the pattern.
    Pattern {
        text: String,
        pattern: PathPattern,
        project: WirePath,
    },
    External(ExternalCall),
    /// Calls of this tool with any arguments. The kernel confines the tool's server.
    Tool(ExternalCall),
    Page(FetchCall),
    Host(Hosts),
}

impl Scope {
    /// Returns the scope that the person chose in the answer. The error says why the scope does not fit the request.
    pub fn of(
        scope: SessionScope,
        ask: &Ask,
        subject: &Subject,
        standing: &StandingRights,
    ) -> Result<Self, String> {
        if ask.kind == AskKind::Denied {
            return after_denial(&scope, &ask.grant).map(Self::Standing).ok_or_else(|| MISFIT.to_owned());
        }
        let effect = match (&scope, subject) {
            (_, Subject::Effect { proposal, .. }) => &*proposal.effect,
            (SessionScope::Exact, Subject::External(call)) => {
                return Ok(Self::Remembered(vec![Covered::External(call.clone())]));
            }
            (SessionScope::Tool, Subject::External(call)) if call.guest.is_some() => {
                return Ok(Self::Remembered(vec![Covered::Tool(call.clone())]));
            }
            (SessionScope::ToolInProject, Subject::External(call)) if call.guest.is_some() => {
                return Ok(Self::Kept {
                    setting: KeptSetting::Tool(call.clone().into()),
                    covered: vec![Covered::Tool(call.clone())],
                });
            }
            (SessionScope::Exact, Subject::Fetch(call)) => {
                return Ok(Self::Remembered(vec![Covered::Page(call.clone())]));
            }
            (SessionScope::Host, Subject::Fetch(call)) => {
                return Ok(Self::Remembered(vec![Covered::Host(call.url.rules())]));
            }
            (_, Subject::External(_) | Subject::Fetch(_) | Subject::Changes(_)) => {
                return Err(MISFIT.to_owned());
            }
            (_, Subject::Agent(_)) => return Err(SPAWN.to_owned()),
            (_, Subject::Plan(_)) => return Err(PLAN.to_owned()),
        };
        let covered = match (scope, ask.kind, effect) {
            (SessionScope::Exact, _, Effect::Exec(exec)) => Covered::Command(Box::new(exec.clone())),
            (SessionScope::Exact, _, Effect::Patch(patch)) => {
                Covered::Files(patch.files.iter().map(|file| file.path.clone()).collect())
            }
            (SessionScope::CommandPrefix(words), _, Effect::Exec(exec)) => prefix(words, exec)?,
            (SessionScope::CommandPrefixes(list), _, Effect::Exec(exec)) => {
                return parts(list, exec).map(Self::Remembered);
            }
            (SessionScope::CommandPrefixesInProject(list), _, Effect::Exec(exec)) => {
                return in_project(list, exec, ask, standing);
            }
            (SessionScope::PathPattern(text), AskKind::Patch, effect) => pattern(text, effect, standing)?,
            (SessionScope::GrantRoot, AskKind::Patch | AskKind::Exec, _) => {
                let path = super::grant_root(standing, &ask.grant)
                    .ok_or("the request does not offer a directory")?;
                return Ok(Self::Standing(RightsChange::AddWrite { path }));
            }
            (SessionScope::Network, AskKind::Network, _) => {
                return Ok(Self::Standing(standing_network(&ask.grant)));
            }
            _ => return Err(MISFIT.to_owned()),
        };
        Ok(Self::Remembered(vec![covered]))
    }
}

/// Returns the change that makes a grant permanent; `None` if the chosen scope does not fit the grant.
fn after_denial(scope: &SessionScope, grant: &Grant) -> Option<RightsChange> {
    match scope {
        SessionScope::GrantRoot => root_after_denial(grant).map(|path| RightsChange::AddWrite { path }),
        SessionScope::Socket => socket_after_denial(grant).map(|path| RightsChange::AddSocket { path }),
        SessionScope::Network
            if grant.write.is_empty() && grant.sockets.is_empty() && grant.net.reaches_out() =>
        {
            Some(standing_network(grant))
        }
        _ => None,
    }
}

/// Returns the change that makes the grant's network access permanent.
fn standing_network(grant: &Grant) -> RightsChange {
    match &grant.net {
        Network::Hosts(hosts) => RightsChange::AddHosts { hosts: hosts.clone(), reach: None },
        Network::Off | Network::On => RightsChange::Network { net: Network::On, reach: None },
    }
}

/// Returns the writable directory of a grant; `None` if the grant contains anything else.
pub(super) fn root_after_denial(grant: &Grant) -> Option<WirePath> {
    match grant.write.as_slice() {
        [root] if grant.net.is_off() && grant.sockets.is_empty() => Some(root.clone()),
        _ => None,
    }
}

/// Returns the socket of a grant; `None` if the grant contains anything else.
fn socket_after_denial(grant: &Grant) -> Option<WirePath> {
    match grant.sockets.as_slice() {
        [socket] if grant.net.is_off() && grant.write.is_empty() => Some(socket.clone()),
        _ => None,
    }
}

fn prefix(words: Vec<String>, exec: &Exec) -> Result<Covered, String> {
    let text = script(exec).ok_or("no command prefix can be approved for this command")?;
    check_prefix(&words).map_err(|error| error.to_string())?;
    if !covers(std::slice::from_ref(&words), text) {
        return Err(format!("the prefix {:?} does not cover the requested command", words.join(" ")));
    }
    Ok(Covered::Prefix { words, like: Box::new(exec.clone()) })
}

/// Returns an approval for each listed prefix of a part of a command. Together the prefixes need not cover the command,
/// which the answer itself approves.
fn parts(list: Vec<Vec<String>>, exec: &Exec) -> Result<Vec<Covered>, String> {
    let text = script(exec).ok_or("no command prefix can be approved for this command")?;
    if list.is_empty() {
        return Err("the answer names no command prefix".to_owned());
    }
    let covered = list.into_iter().map(|words| {
        check_prefix(&words).map_err(|error| error.to_string())?;
        if !begins_a_part(&words, text) {
            return Err(format!("no part of the command begins with {:?}", words.join(" ")));
        }
        Ok(Covered::Prefix { words, like: Box::new(exec.clone()) })
    });
    covered.collect()
}

fn pattern(text: String, effect: &Effect, standing: &StandingRights) -> Result<Covered, String> {
    let pattern = PathPattern::parse(&text).map_err(|error| error.to_string())?;
    let covered = Covered::Pattern { text, pattern, project: standing.project().clone() };
    if covered.matches(effect) {
        Ok(covered)
    } else {
        Err("the pattern does not cover every file of the requested change".to_owned())
    }
}

impl Covered {
    /// True if the action needs no other approval than this one.
    pub fn covers(&self, subject: &Subject) -> bool {
        match (self, subject) {
            (Self::External(approved), Subject::External(call)) => approved == call,
            (Self::Tool(approved), Subject::External(call)) => {
                ExternalCall { json: approved.json.clone(), ..call.clone() } == *approved
            }
            (Self::Page(approved), Subject::Fetch(call)) => approved == call,
            (Self::Host(hosts), Subject::Fetch(call)) => hosts.covers(&call.url.rules()),
            (_, subject) => subject.effect().is_some_and(|effect| self.matches(effect)),
        }
    }

    fn matches(&self, effect: &Effect) -> bool {
        match (self, effect) {
            // The time limit is not a right.
            (Self::Command(like), Effect::Exec(exec)) => {
                Exec { timeout_ms: like.timeout_ms, ..exec.clone() } == **like
            }
            (Self::Files(files), Effect::Patch(patch)) => {
                patch.files.iter().map(|file| file.path.clone()).collect::<BTreeSet<_>>() == *files
            }
            (Self::Prefix { words, .. }, Effect::Exec(exec)) => {
                self.is_like(exec)
                    && script(exec).is_some_and(|text| covers(std::slice::from_ref(words), text))
            }
            (Self::Pattern { pattern, project, .. }, Effect::Patch(patch)) => {
                let covers = |path: &Path| pattern.covers(project.as_path(), path);
                !patch.files.is_empty() && patch.files.iter().all(|file| covers(file.path.as_path()))
            }
            _ => false,
        }
    }

    /// Returns the words of the approved prefix; `None` for a command in another directory or with other access.
    pub fn prefix_for(&self, exec: &Exec) -> Option<&Vec<String>> {
        match self {
            Self::Prefix { words, .. } if self.is_like(exec) => Some(words),
            _ => None,
        }
    }

    fn is_like(&self, exec: &Exec) -> bool {
        let Self::Prefix { like, .. } = self else { return false };
        let same =
            |exec: &Exec| (exec.cwd.clone(), exec.environment.clone(), exec.access, exec.network.clone());
        same(exec) == same(like)
    }

    /// Returns the network access of the confined server whose calls are covered; `None` if the approval covers none.
    pub fn server_net(&self) -> Option<&Network> {
        match self {
            Self::External(call) | Self::Tool(call) => call.guest.as_ref().map(|guest| &guest.rights.net),
            _ => None,
        }
    }

    /// True if the approval covers changes of files by a pattern, which alone decides which paths become writable.
    pub const fn is_of_files(&self) -> bool {
        matches!(self, Self::Pattern { .. })
    }
}

/// Returns the shell text of a `bash -c` command; `None` for other commands.
pub(super) fn script(exec: &Exec) -> Option<&str> {
    match exec.argv.as_slice() {
        [bash, flag, text] if bash.as_bytes() == b"bash" && flag.as_bytes() == b"-c" => {
            std::str::from_utf8(text.as_bytes()).ok()
        }
        _ => None,
    }
}

/// True if `inner` grants no more than `outer`.
pub(super) fn is_within(inner: &Grant, outer: &Grant) -> bool {
    inner.meet(outer) == normal(inner)
}

fn normal(grant: &Grant) -> Grant {
    grant.meet(grant)
}

/// Writes the description that lists of approvals show.
impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(exec) => match script(exec) {
                Some(text) => write!(f, "exactly this command, in {}: {text}", exec.cwd),
                None => write!(f, "exactly the command {:?}, in {}", exec.argv, exec.cwd),
            },
            Self::Files(files) => {
                f.write_str("changes of:")?;
                files.iter().try_for_each(|path| write!(f, " {path}"))
            }
            Self::Prefix { words, like } => {
                write!(f, "commands that begin with: {}, in {}", words.join(" "), like.cwd)
            }
            Self::Pattern { text, .. } => write!(f, "changes of files that match: {text}"),
            Self::Page(call) => write!(f, "exactly this page: {}", call.url),
            Self::Host(hosts) => write!(f, "pages of {hosts}"),
            Self::External(ExternalCall { server, tool, json, .. }) => {
                write!(f, "exactly this call of {tool} of {server}: {json}")
            }
            Self::Tool(ExternalCall { server, tool, .. }) => write!(f, "calls of {tool} of {server}"),
        }
    }
}
