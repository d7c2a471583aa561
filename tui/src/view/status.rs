//! Status bar, one row: mode, activity, approval mode, network, tokens of the turn and of the session, and more if
//! there is room.
//!
//! ```text
//! INSERT  EXECUTE · ask · net off · ↑12.3k ↓1.2k/↑40.1k ↓2.2k · read-only · claude-opus-5-5 · 4% context · $0.15 · project · main
//! ```

use ipc::path::WirePath;
use ipc::rights::Network;
use protocol::event::{Account, Activity, counted};
use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::model::{Mode, Model, Pending, access};
use crate::start::StatusWords;
use crate::text::{Clusters, SafeText};

/// Draws the bar. If the bar is narrow, words are abbreviated, but mode, activity, network and tokens stay.
pub(super) fn status(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let asked = model.mode != Mode::Command && model.card().is_some_and(|card| card.is_open(model.now));
    let style = if asked { theme.alarm() } else { theme.mode(model.mode) };
    let session = &model.agents.shown().session;
    let (row, is_short) = row(model, asked, usize::from(pane.width()));
    let net = if session.net.reaches_out() { theme.open() } else { Style::new() };
    let activity = if model.plans_now() { theme.planner() } else { Style::new() };
    let mode = if session.turn_allowed { theme.open() } else { theme.strong() };
    let styles = [style, activity, mode, net, theme.dim()];
    let hides = model.start.status == StatusWords::Short;
    let ordinary = [
        !asked && model.mode == Mode::Insert,
        session.activity == Activity::Execute,
        false,
        session.net.is_off() && !matches!(session.pending, Some(Pending::Net(_))),
        model.agents.spent_in_all().usage.total() == 0,
    ];
    let between = if is_short { "·" } else { " · " };
    let mut x = 0;
    let mut parts =
        row.iter().zip(styles).zip(ordinary).enumerate().filter(|(_, (_, ordinary))| !(hides && *ordinary));
    let mut before = None;
    for (n, ((text, style), _)) in &mut parts {
        x = match before.replace(n) {
            None => x,
            Some(0) => pane.put(x, 0, " ", theme.dim()),
            Some(_) => pane.put(x, 0, between, theme.dim()),
        };
        x = pane.put(x, 0, SafeText::line(text).all(), style);
    }
    further(model, pane, x, theme);
}

/// Texts of the bar: mode, activity, approval mode, network, tokens.
type StatusRow = [String; 5];

/// Returns the longest texts that fit. The `bool` is true if they are the short ones.
fn row(model: &Model, asked: bool, room: usize) -> (StatusRow, bool) {
    let (turn, all) = accounts(model);
    let counts = [(tokens(&turn), tokens(&all)), (sum(&turn), tokens(&all)), (sum(&turn), sum(&all))];
    let fits = |row: &StatusRow, between| columns(row, between) <= room;
    let [whole, part, _] = &counts;
    for (is_named, (turn, all)) in [(true, whole), (false, whole), (false, part)] {
        let row = long(model, asked, is_named, format!("{turn}/{all}"));
        if fits(&row, 3) {
            return (row, false);
        }
    }
    let close = |(turn, all): &(String, String)| format!("{turn}/{all}").replace(' ', "");
    let [first, second, last] = counts.each_ref().map(|counts| short(model, asked, close(counts)));
    let row = [first, second].into_iter().find(|row| fits(row, 1)).unwrap_or(last);
    (row, true)
}

/// Returns the long texts. Of a list of hosts, they contain the first host if `is_named`, else the number of hosts.
fn long(model: &Model, asked: bool, is_named: bool, counts: String) -> StatusRow {
    let session = &model.agents.shown().session;
    let word = if is_named { named } else { word };
    let mode = match &session.pending {
        Some(Pending::Mode(mode)) => format!("{} → {mode} …", session.mode),
        _ if session.turn_allowed => "turn allowed".to_owned(),
        _ => session.mode.to_string(),
    };
    let net = match &session.pending {
        Some(Pending::Net(net)) => format!("net {} → {} …", word(&session.net), word(net)),
        _ => format!("net {}", word(&session.net)),
    };
    let activity = session.activity.as_str().to_uppercase();
    let [name, _] = names(model.mode, asked);
    [name.to_owned(), activity, mode, net, counts]
}

/// Returns the short texts, such as ` INS EXE·ask·off·↑1.2k↓300/↑40.1k↓2.2k`.
fn short(model: &Model, asked: bool, counts: String) -> StatusRow {
    let session = &model.agents.shown().session;
    let mode = match &session.pending {
        Some(Pending::Mode(mode)) => format!("{}→{mode}", session.mode),
        _ if session.turn_allowed => "turn".to_owned(),
        _ => session.mode.to_string(),
    };
    let net = match &session.pending {
        Some(Pending::Net(net)) => format!("{}→{}", word(&session.net), word(net)),
        _ => word(&session.net),
    };
    let activity = if session.activity == Activity::Plan { "PLAN" } else { "EXE" };
    let [_, name] = names(model.mode, asked);
    [name.to_owned(), activity.to_owned(), mode, net, counts]
}

const fn names(mode: Mode, asked: bool) -> [&'static str; 2] {
    match mode {
        _ if asked => [" APPROVAL ", " APPROVAL"],
        Mode::Normal => [" NORMAL ", " NOR"],
        Mode::Insert => [" INSERT ", " INS"],
        Mode::Command => [" COMMAND ", " CMD"],
        Mode::Agents => [" AGENTS ", " AGT"],
        Mode::Plan => [" PLAN VIEW ", " VIEW"],
        Mode::Log => [" LOG ", " LOG"],
        Mode::Rewind => [" REWIND ", " RWD"],
        Mode::Page => [" PAGE ", " PAGE"],
        Mode::Findings => [" FINDINGS ", " FND"],
        Mode::Select => [" SELECT ", " SEL"],
    }
}

fn word(net: &Network) -> String {
    match net {
        Network::On => "on".to_owned(),
        Network::Off => "off".to_owned(),
        Network::Hosts(hosts) => match hosts.rules().len() {
            1 => "1 host".to_owned(),
            count => format!("{count} hosts"),
        },
    }
}

/// Returns the first name of a list of hosts and the number of others: `pypi.org +1`.
fn named(net: &Network) -> String {
    let Network::Hosts(hosts) = net else { return word(net) };
    match hosts.rules() {
        [] => word(net),
        [only] => only.to_string(),
        [first, others @ ..] => format!("{first} +{}", others.len()),
    }
}

/// Returns the width of the texts in columns, with `between` columns between two texts.
fn columns(row: &StatusRow, between: usize) -> usize {
    let texts: usize = row.iter().map(|text| text.chars().count()).sum();
    texts + 1 + between * (row.len() - 2)
}

/// Draws, as far as there is room: sandbox and access, model, used context, cost, directory and branch.
fn further(model: &Model, pane: &mut Pane<'_>, mut x: u16, theme: Theme) {
    let session = &model.agents.shown().session;
    let (_, all) = accounts(model);
    let hides = model.start.status == StatusWords::Short;
    let sandbox = Some(SafeText::line(access::sandbox(session.tier)));
    let access = access::places(&session.rights);
    let access = Some(SafeText::line(&access)).filter(|_| !(hides && access == access::READ_ONLY));
    let open = access::opened(&session.rights).map(|open| SafeText::line(&open));
    let context = session.filled().map(|share| SafeText::line(&format!("{share}% context")));
    let cost = all.money().filter(|_| all.usage.prompt() > 0).map(|money| SafeText::line(&money));
    let directory = Some(SafeText::labelled("", last_name(&model.start.project))).filter(|_| !hides);
    let branch = model.branch.as_ref().map(|branch| SafeText::line(branch));
    let plain = [sandbox, access, Some(SafeText::line(&session.model)), context, cost, directory, branch];
    let texts = open.map(|open| (open, theme.open())).into_iter();
    let texts = texts.chain(plain.into_iter().flatten().map(|text| (text, theme.dim())));
    for (text, style) in texts.filter(|(text, _)| !text.is_empty()) {
        let columns: usize = Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum();
        if columns + 3 > usize::from(pane.width().saturating_sub(x)) {
            return;
        }
        x = pane.put(x, 0, " · ", theme.dim());
        x = pane.put(x, 0, text.all(), style);
    }
}

fn last_name(path: &WirePath) -> &[u8] {
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| path.as_bytes())
}

fn accounts(model: &Model) -> (Account, Account) {
    let turn = model.agents.of_turn(model.agents.shown_id());
    (turn, model.agents.spent_in_all())
}

fn tokens(account: &Account) -> String {
    let usage = &account.usage;
    let mark = usage.mark();
    format!("↑{mark}{} ↓{mark}{}", counted(usage.prompt()), counted(usage.output))
}

fn sum(account: &Account) -> String {
    format!("{}{}", account.usage.mark(), counted(account.usage.total()))
}
