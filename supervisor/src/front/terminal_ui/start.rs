//! The data with which the UI starts: the new session and the abilities of the terminal.

use std::collections::BTreeSet;

use agent::core::Window;
use gate::command_line;
use gate::path_pattern::PathPattern;
use model::provider::catalogue;
use protocol::cost::{Prices, Rates};
use protocol::event::counted;
use ratatui::layout::Size;
use tui::keymap::KeymapError;
use tui::{Capabilities, Colour, KnownModel, KnownModels, Origins, Previews, Start};

use super::background;
use crate::engine::opening::OpenedSession;
use crate::process::messages::time;
use crate::settings::config::Effective;

/// Returns the data for a new session on a terminal of this size. `window` is the size of the model's context.
pub(super) fn of(
    session: &OpenedSession,
    window: Window,
    effective: &Effective,
    size: Size,
    history: Vec<String>,
) -> Result<Start, KeymapError> {
    let standing = session.standing();
    Ok(Start {
        project: standing.project().clone(),
        activity: session.activity(),
        mode: standing.mode(),
        net: standing.rights().net.clone(),
        rights: standing.summary(),
        // The tier is known once the first worker has started.
        tier: None,
        model: effective.model().to_owned(),
        models: known_models(effective),
        window: Some(window.context),
        keymap: effective.keymap()?,
        is_plain: effective.has_plain_keys(),
        status: effective.status_words(),
        commands: effective.commands.clone(),
        history,
        capabilities: Capabilities {
            colour: colour(),
            theme: effective.theme().or_else(background::of_environment),
            size: (size.width, size.height),
        },
        local_time: time::of_log,
        previews: Previews { prefix: command_line::preview, pattern },
        unasked: effective.unasked(),
        origins: Origins {
            mode: effective.origin("mode"),
            net: effective.origin("rights.net"),
            write: effective.origin("rights.write"),
            confirm_shell: effective.origin("approvals.confirm_shell"),
        },
    })
}

/// Returns the models that the settings name, and the catalogue's models of the same provider.
pub(super) fn known_models(effective: &Effective) -> KnownModels {
    let of_keys = ["plan.model", "execute.model"].iter().filter_map(|key| effective.model_of(key));
    let of_roles = effective.roles();
    let of_roles = of_roles.iter().filter_map(|role| role.model.clone());
    let of_tables = effective.models.iter().map(|entry| entry.pattern.as_str().to_owned());
    let own = std::iter::once(effective.model().to_owned());
    let mut set: Vec<_> =
        own.chain(of_tables).chain(effective.agent_models()).chain(of_keys).chain(of_roles).collect();
    let mut seen = BTreeSet::new();
    set.retain(|name| seen.insert(name.clone()));
    let api = effective.facts().api;
    let is_reached = |name: &&str| !name.ends_with('*') && effective.facts_of(name).api == api;
    let others = catalogue::names().filter(is_reached).filter(|name| !seen.contains(*name));
    let known = |name: &str| {
        let facts = effective.facts_of(name);
        KnownModel { name: name.to_owned(), window: facts.context, price: facts.prices.map(price) }
    };
    KnownModels { set: set.iter().map(|name| known(name)).collect(), catalogue: others.map(known).collect() }
}

fn price(prices: Prices) -> String {
    let Rates { input, output, .. } = prices.rates;
    let long = match prices.long {
        Some(long) => format!(", more above {} tokens", counted(long.above)),
        None => String::new(),
    };
    format!("${input} in, ${output} out{long}")
}

/// True if the theme depends on the terminal's background, and the terminal can be asked for the colour.
pub(super) fn asks_for_background(effective: &Effective) -> bool {
    effective.theme().is_none() && colour() != Colour::None && background::can_be_asked()
}

pub(super) fn colour() -> Colour {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let [colours, term] = ["COLORTERM", "TERM"].map(|name| std::env::var(name).unwrap_or_default());
    colour_of(is_off, &colours, &term)
}

/// Returns the kind of colours from the environment. A non-empty `NO_COLOR` turns them off (no-color.org), `COLORTERM`
/// indicates exact colours, and the name in `TERM` the number of colours (terminfo(5)).
fn colour_of(is_off: bool, colours: &str, term: &str) -> Colour {
    match (colours, term) {
        _ if is_off => Colour::None,
        ("truecolor" | "24bit", _) => Colour::Exact,
        (_, term) if term.ends_with("-direct") => Colour::Exact,
        (_, term) if term.ends_with("-256color") => Colour::Indexed,
        _ => Colour::Sixteen,
    }
}

/// Returns a description of the files that a path pattern matches, or the error in the pattern.
fn pattern(glob: &str) -> String {
    match PathPattern::parse(glob) {
        Ok(pattern) => pattern.preview(),
        Err(error) => format!("Matches nothing: {error}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_tells_the_colours_of_the_terminal() {
        let of = |colours, term| colour_of(false, colours, term);
        for (colours, term) in [("truecolor", "xterm"), ("24bit", "dumb"), ("", "xterm-direct")] {
            assert_eq!(of(colours, term), Colour::Exact, "{colours} {term}");
            assert_eq!(colour_of(true, colours, term), Colour::None, "{colours} {term}");
        }
        for term in ["xterm-256color", "screen-256color", "tmux-256color"] {
            assert_eq!(of("", term), Colour::Indexed, "{term}");
        }
        for (colours, term) in [("", ""), ("", "linux"), ("yes", "xterm"), ("", "256color")] {
            assert_eq!(of(colours, term), Colour::Sixteen, "{colours} {term}");
        }
    }
}
