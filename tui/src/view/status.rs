//! The status bar: mode · activity · approval mode · net · tier · tokens, and the rights where there is room.

use ipc::event::{Account, counted};
use ipc::rights::Network;
use ratatui::style::Style;

use super::pane::Pane;
use super::theme::Theme;
use crate::model::{Mode, Model, Pending};
use crate::text::SafeText;

/// A piece of the bar, and how it looks.
type Piece = (String, Style);

/// Draws the bar: what does not fit goes in this order: the tokens, the tier, the activity.
pub(super) fn status(model: &Model, pane: &mut Pane<'_>, theme: Theme) {
    let asked = model.cards.front().is_some_and(|card| card.is_open(model.now));
    let (word, style) = match model.mode {
        _ if asked => (" APPROVAL ", theme.alarm()),
        Mode::Normal => (" NORMAL ", theme.mode(model.mode)),
        Mode::Insert => (" INSERT ", theme.mode(model.mode)),
        Mode::Command => (" COMMAND ", theme.mode(model.mode)),
    };
    let x = pane.put(0, 0, word, style);
    let pieces = fitting(pieces(model, theme), usize::from(pane.width().saturating_sub(x)));
    let mut x = x;
    for (n, (text, style)) in pieces.iter().enumerate() {
        x = pane.put(x, 0, if n == 0 { " " } else { " · " }, theme.dim());
        x = pane.put(x, 0, SafeText::line(text).all(), *style);
    }
    if pane.height() > 1 {
        pane.put(0, 1, SafeText::line(&model.session.rights).all(), theme.dim());
    }
}

/// The pieces in their order, each with its rank: the higher goes first where room is short.
fn pieces(model: &Model, theme: Theme) -> Vec<(u8, Piece)> {
    let session = &model.session;
    let mode = match session.pending {
        Some(Pending::Mode(mode)) => format!("{} → {mode} …", session.mode),
        _ => session.mode.to_string(),
    };
    let word = |net| if net == Network::On { "on" } else { "off" };
    let net = match session.pending {
        Some(Pending::Net(net)) => format!("net: {} → {} …", word(session.net), word(net)),
        _ => format!("net: {}", word(session.net)),
    };
    let net_style = if session.net == Network::On { theme.open() } else { Style::new() };
    let turn = model.turn.account;
    let mut all = session.account;
    if model.turn.is_running() {
        all += turn;
    }
    let pieces = vec![
        (2, (model.start.activity.clone(), Style::new())),
        (0, (mode, theme.strong())),
        (0, (net, net_style)),
        (3, (session.tier.clone(), Style::new())),
        (4, (format!("turn {}", brief(&turn)), theme.dim())),
        (5, (format!("all {}", brief(&all)), theme.dim())),
    ];
    pieces.into_iter().filter(|(_, (text, _))| !text.is_empty()).collect()
}

/// `↑12.3k (94% cached) ↓1.2k $0.08`: what came from the cache where something did, the cost where it is known.
fn brief(account: &Account) -> String {
    let Account { usage, cost } = account;
    let hits = Some(account.hits()).filter(|hits| *hits > 0);
    let hits = hits.map(|hits| format!(" ({hits}% cached)")).unwrap_or_default();
    let cost = cost.map(|cost| format!(" {cost}")).unwrap_or_default();
    format!("↑{}{hits} ↓{}{cost}", counted(usage.prompt()), counted(usage.output))
}

fn fitting(mut pieces: Vec<(u8, Piece)>, room: usize) -> Vec<Piece> {
    // Each piece has a separator of at most three columns before it; all of them are of narrow characters.
    let width =
        |pieces: &[(u8, Piece)]| pieces.iter().map(|(_, (text, _))| text.chars().count() + 3).sum::<usize>();
    while width(&pieces) > room + 2 {
        let highest = pieces.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
        match highest {
            Some((at, (1.., _))) => drop(pieces.remove(at)),
            _ => break,
        }
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
}
