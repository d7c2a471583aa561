//! The status bar: mode · activity · approval mode · network · tokens, and the access where there is room.

use ipc::event::{Account, counted};
use ipc::rights::Network;
use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::model::{Mode, Model, Pending, access};
use crate::text::SafeText;

/// Draws the bar. In a narrow one words become shorter; of the mode, the activity, the approval mode and the network each
/// stays.
pub(super) fn status(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let asked = model.cards.front().is_some_and(|card| card.is_open(model.now));
    let (word, style) = match model.mode {
        _ if asked => (" APPROVAL ", theme.alarm()),
        Mode::Normal => (" NORMAL ", theme.mode(model.mode)),
        Mode::Insert => (" INSERT ", theme.mode(model.mode)),
        Mode::Command => (" COMMAND ", theme.mode(model.mode)),
        Mode::Agents => (" AGENTS ", theme.mode(model.mode)),
        Mode::Plan => (" PLAN VIEW ", theme.mode(model.mode)),
    };
    let mut x = pane.put(0, 0, word, style);
    let net = if model.agents.shown().session.net == Network::On { theme.open() } else { Style::new() };
    let activity = if model.plans_now() { theme.planner() } else { Style::new() };
    let styles = [activity, theme.strong(), net, Style::new(), theme.dim(), theme.dim()];
    let pieces = fitting(model, usize::from(pane.width().saturating_sub(x)));
    let shown = pieces.iter().zip(styles).filter(|(text, _)| !text.is_empty());
    for (n, (text, style)) in shown.enumerate() {
        x = pane.put(x, 0, if n == 0 { " " } else { " · " }, theme.dim());
        x = pane.put(x, 0, SafeText::line(text).all(), style);
    }
    if pane.height() > 1 {
        pane.put(
            0,
            1,
            SafeText::line(&access::plain(&model.agents.shown().session.rights)).all(),
            theme.dim(),
        );
    }
}

/// Activity, approval mode, network, sandbox, tokens of the turn, tokens of the session.
type Pieces = [String; 6];

const ACTIVITY: usize = 0;
const SANDBOX: usize = 3;
const TURN: usize = 4;
const ALL: usize = 5;

fn pieces(model: &Model) -> Pieces {
    let session = &model.agents.shown().session;
    let mode = match session.pending {
        Some(Pending::Mode(mode)) => format!("{} → {mode} …", session.mode),
        _ => session.mode.to_string(),
    };
    let word = |net| if net == Network::On { "on" } else { "off" };
    let net = match session.pending {
        Some(Pending::Net(net)) => format!("net {} → {} …", word(session.net), word(net)),
        _ => format!("net {}", word(session.net)),
    };
    let (turn, all) = accounts(model);
    [
        session.activity.to_string(),
        mode,
        net,
        access::sandbox(session.tier).to_owned(),
        format!("turn {}", brief(&turn)),
        format!("all {}", brief(&all)),
    ]
}

/// The accounts of the turn and of the session. What a sub-agent spends is part of its parent's account.
fn accounts(model: &Model) -> (Account, Account) {
    let turn = model.agents.of_turn(model.agents.shown_id());
    let mut all = Account::default();
    for (agent, view) in model.agents.each().filter(|(agent, _)| agent.is_top_level()) {
        all += view.session.account;
        if view.turn.is_running() {
            all += model.agents.of_turn(agent);
        }
    }
    (turn, all)
}

/// The pieces, shortened one by one until they fit.
fn fitting(model: &Model, room: usize) -> Pieces {
    let mut pieces = pieces(model);
    let (turn, all) = accounts(model);
    let activity: String = pieces[ACTIVITY].chars().take(4).collect();
    let shorter = [
        (ALL, format!("all {}", tokens(&all))),
        (TURN, format!("turn {}", tokens(&turn))),
        (SANDBOX, String::new()),
        (TURN, format!("turn {}", sum(&turn))),
        (ALL, format!("all {}", sum(&all))),
        (ACTIVITY, activity),
        (ALL, String::new()),
        (TURN, sum(&turn)),
        (TURN, String::new()),
    ];
    let mut shorter = shorter.into_iter();
    while columns(&pieces) > room {
        let Some((at, text)) = shorter.next() else { break };
        pieces[at] = text;
    }
    pieces
}

/// One column before the first piece and three before each other one; all of them are of narrow characters.
fn columns(pieces: &Pieces) -> usize {
    let shown = pieces.iter().filter(|text| !text.is_empty());
    shown.map(|text| text.chars().count() + 3).sum::<usize>().saturating_sub(2)
}

/// `↑12.3k (94% cached) ↓1.2k $0.08`: what came from the cache where something did, the cost where it is known.
fn brief(account: &Account) -> String {
    let Account { usage, cost } = account;
    let hits = Some(account.hits()).filter(|hits| *hits > 0);
    let hits = hits.map(|hits| format!(" ({hits}% cached)")).unwrap_or_default();
    let cost = cost.map(|cost| format!(" {cost}")).unwrap_or_default();
    format!("↑{}{hits} ↓{}{cost}", counted(usage.prompt()), counted(usage.output))
}

fn sum(account: &Account) -> String {
    counted(account.usage.prompt() + account.usage.output)
}

fn tokens(account: &Account) -> String {
    let usage = &account.usage;
    format!("↑{} ↓{}", counted(usage.prompt()), counted(usage.output))
}
