use std::path::PathBuf;

use ipc::id::AgentId;
use ipc::image::Image;
use ipc::path::WirePath;
use ipc::rights::{Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::frontend::{AgentAction, UserActionKind};
use protocol::network_words;

use super::{
    access as access_page, context, copy, cost, findings, help, keys, log, models, own, plan, prompts,
    review, rewind, select, tasks, tell, tree,
};
use crate::commands::{Command, CommandRow, of_word};
use crate::message::Action;
use crate::model::{Block, Look, Model, Pending, Shape};

pub(super) fn run(model: &mut Model, sign: char, line: &str, actions: &mut Vec<Action>) {
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else { return };
    let rest = line.trim_start().strip_prefix(name).map(str::trim).filter(|rest| !rest.is_empty());
    if let ("model!", Some(model_name)) = (name, rest) {
        return set_model(model_name, actions);
    }
    if own::run(model, line) || prompts::run(model, sign, line, actions) {
        return;
    }
    let found = of_word(name);
    if found.is_some_and(|row| perform(model, row.command, rest, actions)) {
        return;
    }
    let mut mistake = match found {
        Some(row) => wrong_argument(row, rest),
        None => format!("no command {sign}{name} (see :help)"),
    };
    if sign == '/' && rest.is_some() && found.is_none() {
        mistake.push_str("; to send the line as text, press Up and put a space before it");
    }
    model.answer(Look::Error, &mistake);
}

fn wrong_argument(row: &CommandRow, argument: Option<&str>) -> String {
    if matches!(row.command, Command::Allow | Command::Disallow) {
        let forms = ["write PATH", "socket PATH", "net"].map(|right| format!(":{} {right}", row.name));
        let said = argument.map(|argument| format!("cannot use {argument:?}: ")).unwrap_or_default();
        return format!("{said}the command is {}", forms.join(", "));
    }
    let usage = row.typed.unwrap_or(row.name);
    let choices = usage.split_once(' ').map(|(_, choices)| choices.split('|').collect::<Vec<_>>());
    match (argument, choices.as_deref()) {
        (Some(argument), Some([first @ .., last])) if !first.is_empty() => {
            format!("no {} {argument:?}; choose {} or {last}", row.name, first.join(", "))
        }
        (Some(argument), Some(_)) => format!("cannot use {argument:?}: the command is :{usage}"),
        (Some(argument), None) => format!("cannot use {argument:?}: :{usage} takes no argument"),
        (None, _) => format!("the command is :{usage}"),
    }
}

/// Executes a command. Returns false if its argument is invalid.
fn perform(model: &mut Model, command: Command, argument: Option<&str>, actions: &mut Vec<Action>) -> bool {
    match (command, argument) {
        (Command::Net, Some(words)) => net(model, words, actions),
        (Command::Allow, Some("net")) => net(model, "on", actions),
        (Command::Disallow, Some("net")) => net(model, "off", actions),
        (Command::Allow | Command::Disallow, Some(what)) => match what.split_once(char::is_whitespace) {
            Some(("write", path)) => write(model, path.trim(), command == Command::Allow, actions),
            Some(("socket", path)) => socket(model, path.trim(), command == Command::Allow, actions),
            _ => return false,
        },
        (Command::Mode, Some(word)) => {
            let Some(mode) = ApprovalMode::named(word) else {
                return false;
            };
            set_mode(model, mode, actions);
        }
        (Command::Revoke, Some(number)) => match number.parse() {
            Ok(id) => keys::revoke(model, id, actions),
            Err(_) => return false,
        },
        (Command::Image, Some(path)) => actions.push(Action::Attach(PathBuf::from(path))),
        (Command::Image, None) => detach(model),
        (Command::Diff, None | Some("files")) => diff(model, false),
        (Command::Diff, Some("steps")) => diff(model, true),
        (Command::Plan, text) => plan::command(model, text, actions),
        (Command::EditPlan, None) => plan::edit(model, actions),
        (Command::Rewind, None) => rewind::open(model),
        (Command::Revert, Some(path)) => rewind::revert(model, path, actions),
        (Command::Agents, None) => tree::open(model),
        (Command::Agent, Some(id)) => tree::show(model, &id.into()),
        (Command::Access | Command::Allow, None) => access_page::show(model),
        (Command::Compact, None) => tell(model, actions, UserActionKind::Agent(AgentAction::Compact)),
        (Command::Clear, None) => {
            actions.push(Action::User(AgentId::root(), UserActionKind::Agent(AgentAction::Clear)));
        }
        (Command::Model, name) => another_model(model, name, actions),
        (Command::Log, None) => log::open(model, actions),
        (Command::Context, None) => context::show(model),
        (Command::Cost, None) => cost::show(model),
        (Command::Tasks, None) => tasks::show(model),
        (Command::Findings, None) => findings::open(model),
        (Command::Review, target) => review::start(model, target, actions),
        (Command::SelectLines, None) => select::begin(model, Shape::Lines),
        (Command::Copy, None) => copy::answer(model, actions),
        (Command::CopyCode, None) => copy::code(model, actions),
        (Command::Help, None) => help::show(model),
        (Command::Resume, name) => actions.push(Action::Resume(name.map(str::to_owned))),
        (Command::Quit, None) => actions.push(Action::Quit),
        _ => return false,
    }
    true
}

fn diff(model: &mut Model, by_step: bool) {
    let in_turn = model.agents.any_is_running();
    let blocks = model.changes.shown(by_step, &model.start.project, in_turn);
    model.open_page(Block::of(blocks.into_iter().flat_map(|block| block.parts).collect()));
}

/// Changes to the model `name`. Lists similar names if it is unknown, and all known models if it is `None`.
fn another_model(model: &mut Model, name: Option<&str>, actions: &mut Vec<Action>) {
    match name {
        None => models::open(model),
        Some(name) if model.start.models.knows(name) => set_model(name, actions),
        Some(name) => models::ask_about(model, name),
    }
}

pub(super) fn set_model(name: &str, actions: &mut Vec<Action>) {
    let kind = UserActionKind::SetModel { model: name.to_owned() };
    actions.push(Action::User(AgentId::root(), kind));
}

fn detach(model: &mut Model) {
    if model.attached.is_empty() {
        model.answer(Look::Notice, "no picture is attached; :image PATH attaches one");
    }
    for image in std::mem::take(&mut model.attached) {
        model.answer(Look::Notice, &format!("no longer attached: {image}"));
    }
}

pub(super) fn attached(model: &mut Model, read: Result<Image, String>) -> bool {
    match read {
        Ok(image) => model.attached.push(image),
        Err(why) => model.answer(Look::Error, &why),
    }
    true
}

fn net(model: &mut Model, words: &str, actions: &mut Vec<Action>) {
    let change = match network_words::change(words) {
        Ok(change) => change,
        Err(error) => return model.answer(Look::Error, &error.to_string()),
    };
    let is_off = matches!(&change, RightsChange::Network { net, .. } if net.is_off());
    if !is_off || take_away(model) {
        let session = &mut model.agents.shown_mut().session;
        let rights = Rights { net: session.net.clone(), ..Rights::default() }.with_change(&change);
        session.pending = Some(Pending::Net(rights.net));
    }
    tell(model, actions, UserActionKind::Agent(AgentAction::SetRights { change }));
}

/// Allows writing to a path, or revokes that if `allows` is false. Removes quotes around the path.
fn write(model: &mut Model, path: &str, allows: bool, actions: &mut Vec<Action>) {
    let path = unquoted(path);
    if !allows {
        take_away(model);
    }
    let change = if allows { RightsChange::AddWrite { path } } else { RightsChange::RemoveWrite { path } };
    tell(model, actions, UserActionKind::Agent(AgentAction::SetRights { change }));
}

/// Allows connections to a Unix socket, or revokes that if `allows` is false.
fn socket(model: &mut Model, path: &str, allows: bool, actions: &mut Vec<Action>) {
    let path = unquoted(path);
    if !allows {
        take_away(model);
    }
    let change = if allows { RightsChange::AddSocket { path } } else { RightsChange::RemoveSocket { path } };
    tell(model, actions, UserActionKind::Agent(AgentAction::SetRights { change }));
}

fn unquoted(path: &str) -> WirePath {
    let quoted = path.strip_prefix('\'').and_then(|path| path.strip_suffix('\''));
    quoted.unwrap_or(path).into()
}

/// True if the main agent is shown. Otherwise reports that the access is revoked for all agents.
fn take_away(model: &mut Model) -> bool {
    let asked = model.agents.shown_id().is_top_level();
    if !asked {
        model.answer(Look::Notice, "this access is withdrawn from every agent of the session");
    }
    asked
}

fn set_mode(model: &mut Model, mode: ApprovalMode, actions: &mut Vec<Action>) {
    let session = &model.agents.shown().session;
    if mode == session.mode && session.pending.is_none() {
        return model.answer(Look::Notice, &format!("nothing changed: the mode is {mode}"));
    }
    let takes_away = match (session.mode, mode) {
        (ApprovalMode::Auto, _) | (_, ApprovalMode::Deny) => true,
        (ApprovalMode::Ask | ApprovalMode::Deny, ApprovalMode::Ask | ApprovalMode::Auto) => false,
    };
    if !takes_away || take_away(model) {
        model.agents.shown_mut().session.pending = Some(Pending::Mode(mode));
    }
    tell(model, actions, UserActionKind::Agent(AgentAction::SetMode { mode }));
}

/// Changes the approval mode from `ask` to `auto`, else to `ask`. A requested mode counts as if it were in force.
pub(super) fn cycle_mode(model: &mut Model, actions: &mut Vec<Action>) {
    let session = &model.agents.shown().session;
    let now = match session.pending {
        Some(Pending::Mode(mode)) => mode,
        _ => session.mode,
    };
    let next = match now {
        ApprovalMode::Ask => ApprovalMode::Auto,
        ApprovalMode::Auto | ApprovalMode::Deny => ApprovalMode::Ask,
    };
    set_mode(model, next, actions);
}
