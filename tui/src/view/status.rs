//! Status bar: mode · activity · approval mode · network · tokens, and more if there is room.
//!
//! ```text
//!  INSERT  EXECUTE · ask · net off · turn ↑12.3k ↓1.2k · all ↑40.1k ↓2.2k · sandboxed
//! read-only · network off · secrets hidden · claude-opus-5-5 · 4% context · $0.15 · project · main
//! ```

use ipc::path::WirePath;
use ipc::rights::Network;
use protocol::event::{Account, Activity, counted};
use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::model::{Mode, Model, Pending, access};
use crate::text::{Clusters, SafeText};

/// Draws the bar. A narrow bar abbreviates the words; mode, activity, approval mode, network and tokens are always shown.
pub(super) fn status(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let asked = model.mode != Mode::Command && model.card().is_some_and(|card| card.is_open(model.now));
    let style = if asked { theme.alarm() } else { theme.mode(model.mode) };
    let (row, is_short) = row(model, asked, usize::from(pane.width()));
    let net = if model.agents.shown().session.net.reaches_out() { theme.open() } else { Style::new() };
    let activity = if model.plans_now() { theme.planner() } else { Style::new() };
    let styles = [style, activity, theme.strong(), net, theme.dim(), theme.dim()];
    let between = if is_short { "·" } else { " · " };
    let mut x = 0;
    for (n, (text, style)) in row.iter().zip(styles).enumerate() {
        x = match n {
            0 => x,
            1 => pane.put(x, 0, " ", theme.dim()),
            _ => pane.put(x, 0, between, theme.dim()),
        };
        x = pane.put(x, 0, SafeText::line(text).all(), style);
    }
    let session = &model.agents.shown().session;
    let sandbox = SafeText::line(access::sandbox(session.tier));
    if pane.height() == 1 {
        let more: Vec<_> = std::iter::once(sandbox).chain(further(model)).collect();
        put_as_fits(pane, (x, 0), &more, theme);
    } else {
        put_as_fits(pane, (x, 0), &[sandbox], theme);
        let x = pane.put(0, 1, SafeText::line(&access::plain(&session.rights)).all(), theme.dim());
        put_as_fits(pane, (x, 1), &further(model), theme);
    }
}

/// Texts: mode, activity, approval mode, network, tokens of the turn, tokens of the session.
type StatusRow = [String; 6];

/// Returns the texts in the longest form that fits; true if that is the short form.
fn row(model: &Model, asked: bool, room: usize) -> (StatusRow, bool) {
    let (turn, all) = accounts(model);
    let forms: [fn(&Account) -> String; 3] = [brief, tokens, sum];
    let [brief, tokens, sum] = forms.map(|form| (form(&turn), form(&all)));
    let counts = [
        (&brief.0, &brief.1),
        (&brief.0, &tokens.1),
        (&tokens.0, &tokens.1),
        (&sum.0, &tokens.1),
        (&sum.0, &sum.1),
    ];
    let long = counts.map(|(turn, all)| long(model, asked, [turn, all]));
    if let Some(row) = long.into_iter().find(|row| columns(row, 3) <= room) {
        return (row, false);
    }
    let close = |text: &str| text.replace(' ', "");
    let counts = [(&tokens.0, &tokens.1), (&sum.0, &tokens.1), (&sum.0, &sum.1)];
    let [first, second, last] = counts.map(|(turn, all)| short(model, asked, [close(turn), close(all)]));
    let fits = |row: &StatusRow| columns(row, 1) <= room;
    (
        if fits(&first) {
            first
        } else if fits(&second) {
            second
        } else {
            last
        },
        true,
    )
}

fn long(model: &Model, asked: bool, [turn, all]: [&String; 2]) -> StatusRow {
    let session = &model.agents.shown().session;
    let mode = match &session.pending {
        Some(Pending::Mode(mode)) => format!("{} → {mode} …", session.mode),
        _ => session.mode.to_string(),
    };
    let net = match &session.pending {
        Some(Pending::Net(net)) => format!("net {} → {} …", word(&session.net), word(net)),
        _ => format!("net {}", word(&session.net)),
    };
    let activity = session.activity.as_str().to_uppercase();
    let [name, _] = names(model.mode, asked);
    [name.to_owned(), activity, mode, net, format!("turn {turn}"), format!("all {all}")]
}

/// Returns a short row: ` INS EXE·ask·off·↑1.2k↓300·↑40.1k↓2.2k`.
fn short(model: &Model, asked: bool, [turn, all]: [String; 2]) -> StatusRow {
    let session = &model.agents.shown().session;
    let mode = match &session.pending {
        Some(Pending::Mode(mode)) => format!("{}→{mode}", session.mode),
        _ => session.mode.to_string(),
    };
    let net = match &session.pending {
        Some(Pending::Net(net)) => format!("{}→{}", word(&session.net), word(net)),
        _ => word(&session.net),
    };
    let activity = if session.activity == Activity::Plan { "PLAN" } else { "EXE" };
    let [_, name] = names(model.mode, asked);
    [name.to_owned(), activity.to_owned(), mode, net, turn, all]
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

/// Returns the width of the texts with `between` columns between them.
fn columns(row: &StatusRow, between: usize) -> usize {
    let texts: usize = row.iter().map(|text| text.chars().count()).sum();
    texts + 1 + between * (row.len() - 2)
}

/// Returns the texts of the second row: model, used context, cost, directory, branch.
fn further(model: &Model) -> Vec<SafeText> {
    let session = &model.agents.shown().session;
    let (_, all) = accounts(model);
    let context = session.filled().map(|share| SafeText::line(&format!("{share}% context")));
    let cost = all.money().filter(|_| all.usage.prompt() > 0).map(|money| SafeText::line(&money));
    let directory = SafeText::labelled("", last_name(&model.start.project));
    let branch = model.branch.as_ref().map(|branch| SafeText::line(branch));
    let more = [Some(SafeText::line(&session.model)), context, cost, Some(directory), branch];
    more.into_iter().flatten().collect()
}

/// Returns the last component of a path; `/` for the root.
fn last_name(path: &WirePath) -> &[u8] {
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| path.as_bytes())
}

/// Draws texts in sequence up to the first that does not fit.
fn put_as_fits(pane: &mut Pane<'_>, (mut x, y): (u16, u16), texts: &[SafeText], theme: Theme) {
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let columns: usize = Clusters::new(text.as_str(), 0).map(|cluster| cluster.columns).sum();
        if columns + 3 > usize::from(pane.width().saturating_sub(x)) {
            return;
        }
        x = pane.put(x, y, " · ", theme.dim());
        x = pane.put(x, y, text.all(), theme.dim());
    }
}

/// Returns usage and cost of the turn, including sub-agents, and of the session.
fn accounts(model: &Model) -> (Account, Account) {
    let turn = model.agents.of_turn(model.agents.shown_id());
    (turn, model.agents.spent_in_all())
}

/// Returns a text such as `↑12.3k (94% cached) ↓1.2k`.
fn brief(account: &Account) -> String {
    let usage = &account.usage;
    let hits = Some(account.hits()).filter(|hits| *hits > 0);
    let hits = hits.map(|hits| format!(" ({hits}% cached)")).unwrap_or_default();
    let mark = usage.mark();
    format!("↑{mark}{}{hits} ↓{mark}{}", counted(usage.prompt()), counted(usage.output))
}

fn tokens(account: &Account) -> String {
    let usage = &account.usage;
    let mark = usage.mark();
    format!("↑{mark}{} ↓{mark}{}", counted(usage.prompt()), counted(usage.output))
}

fn sum(account: &Account) -> String {
    format!("{}{}", account.usage.mark(), counted(account.usage.total()))
}
