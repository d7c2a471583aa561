use ipc::rights::{NamedRoot, Network};
use protocol::approval::ApprovalMode;

use super::{Block, Look, Model, Part, Session};
use crate::commands::{Command, KeyMode};
use crate::text::SafeText;

/// Returns the first block of a session's transcript: project directory, access, examples, and the most important keys.
pub(super) fn block(model: &Model) -> Block {
    let place = SafeText::labelled("bailiwick in ", model.start.project.as_bytes());
    let access = access(&model.agents.shown().session, model.plans_now());
    let key = |command, word: &str| {
        let key = model.start.keymap.hint(KeyMode::Insert, command);
        if key.is_empty() { String::new() } else { format!("{key} {word}") }
    };
    let keys = [
        "/ commands".to_owned(),
        "? keys".to_owned(),
        key(Command::Newline, "new line"),
        key(Command::CycleMode, "mode"),
        key(Command::Leave, "stop"),
        ":q quit".to_owned(),
    ];
    let keys: Vec<_> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    let tries = "try: fix the failing test · @README.md explain this · /plan add a flag";
    let notice = |text: &str| Part::new(SafeText::prose(text), Look::Notice);
    Block::of(vec![
        Part::new(place, Look::Heading),
        notice(&access),
        notice(tries),
        notice(&keys.join(" · ")),
    ])
}

fn access(session: &Session, plans: bool) -> String {
    let rights = &session.rights;
    let is_project = |root: &&NamedRoot| matches!(root, NamedRoot::Project);
    let others = rights.write.iter().filter_map(|root| match root {
        NamedRoot::Path(path) => Some(path.to_string()),
        NamedRoot::Project | NamedRoot::Temp | NamedRoot::Caches | NamedRoot::System => None,
    });
    let others: Vec<_> = others.collect();
    let writes = rights.write.iter().any(|root| is_project(&root));
    let mut sentences = vec![
        match (plans, writes, session.mode) {
            (true, _, _) => "Makes a plan, changes nothing.",
            (false, true, _) => "Changes this project without asking.",
            (false, false, ApprovalMode::Deny) => "Reads this project, changes nothing.",
            (false, false, _) => "Reads this project, asks before each change.",
        }
        .to_owned(),
    ];
    if !others.is_empty() {
        sentences.push(format!("May write {}.", others.join(", ")));
    }
    sentences.push(match &rights.net {
        Network::Off => "No network.".to_owned(),
        Network::Hosts(hosts) => {
            let names: Vec<_> = hosts.rules().iter().take(3).map(ToString::to_string).collect();
            let more = hosts.rules().len().saturating_sub(names.len());
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("Reaches only {}{more}.", names.join(", "))
        }
        Network::On => "The network is on.".to_owned(),
    });
    sentences.push(if rights.hidden > 0 { "Secrets hidden." } else { "Nothing hidden." }.to_owned());
    sentences.join(" ")
}
