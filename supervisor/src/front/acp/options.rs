//! Modes and options that a client may choose, limited by the flags of `acp`.

use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use ipc::rights::Network;
use protocol::approval::ApprovalMode;

use crate::front::wire::StartAccess;

/// Id of the mode in which a message starts a planner. A planner changes nothing.
pub(super) const PLAN: &str = "plan";

pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";
pub(super) const NETWORK: &str = "network";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) mode: ApprovalMode,
    pub(super) plans: bool,
    pub(super) net: Network,
    pub(super) model: String,
}

/// Widest mode and network access that a client may choose.
#[derive(Clone, Debug)]
pub(super) struct Ceiling {
    pub(super) mode: ApprovalMode,
    pub(super) net: Network,
    pub(super) models: Vec<String>,
}

/// Modes from the narrowest to the widest. A wider mode permits more without a question.
const FROM_NARROW: [ApprovalMode; 3] = [ApprovalMode::Deny, ApprovalMode::Ask, ApprovalMode::Auto];

/// True if `mode` is not wider than `widest`. A mode that [`FROM_NARROW`] lacks can only equal `widest`.
fn is_within(mode: ApprovalMode, widest: ApprovalMode) -> bool {
    let place = |mode| FROM_NARROW.iter().position(|one| *one == mode);
    match (place(mode), place(widest)) {
        (Some(mode), Some(widest)) => mode <= widest,
        _ => mode == widest,
    }
}

impl Ceiling {
    pub(super) fn new(start: StartAccess, widest: Option<ApprovalMode>) -> Self {
        let StartAccess { mode, net, models } = start;
        Self { mode: widest.unwrap_or(mode), net, models }
    }

    /// Returns the named mode. The error says why a client cannot choose it.
    pub(super) fn mode(&self, word: &str) -> Result<ApprovalMode, String> {
        let known = || ApprovalMode::named(word).filter(|mode| is_within(*mode, self.mode));
        known().ok_or_else(|| match (word, ApprovalMode::named(word)) {
            (_, None) => format!("there is no mode {word:?}"),
            ("auto", _) => {
                "the mode auto is not allowed in this session\n  hint: bailiwick acp --up-to auto".to_owned()
            }
            _ => "the mode ask is not allowed in this session\n  hint: bailiwick acp --up-to ask".to_owned(),
        })
    }

    /// Returns the named network access. The error says why a client cannot choose it.
    pub(super) fn network(&self, word: &str) -> Result<Network, String> {
        match word {
            "off" => Ok(Network::Off),
            word if word == self.net.flag() => Ok(self.net.clone()),
            _ => Err(format!(
                "the network access {word:?} is not allowed in this session, only {}\n  hint: bailiwick acp --net on",
                self.net.flag()
            )),
        }
    }

    fn modes(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let all = [
            (ApprovalMode::Ask, "Ask", "The project is read-only until you allow a change or a command."),
            (ApprovalMode::Auto, "Auto", "The project is writable; other access is denied."),
            (ApprovalMode::Deny, "Deny", "The project is read-only; other access is denied."),
        ];
        let allowed = all.into_iter().filter(|(mode, ..)| is_within(*mode, self.mode));
        let modes = allowed.map(|(mode, name, words)| (mode.as_str(), name, words));
        modes
            .chain([(PLAN, "Plan", "The agent makes a plan, which is executed when you approve it.")])
            .collect()
    }
}

impl Settled {
    pub(super) fn mode_word(&self) -> &'static str {
        if self.plans { PLAN } else { self.mode.as_str() }
    }

    pub(super) fn modes(&self, ceiling: &Ceiling) -> SessionModeState {
        let modes = ceiling.modes().into_iter();
        let modes = modes.map(|(id, name, words)| SessionMode::new(id, name).description(words.to_owned()));
        SessionModeState::new(self.mode_word(), modes.collect())
    }

    pub(super) fn options(&self, ceiling: &Ceiling) -> Vec<SessionConfigOption> {
        let modes = ceiling.modes().into_iter();
        let modes: Vec<_> = modes
            .map(|(id, name, words)| SessionConfigSelectOption::new(id, name).description(words.to_owned()))
            .collect();
        let names: Vec<_> = std::iter::once(&self.model)
            .chain(ceiling.models.iter().filter(|name| **name != self.model))
            .map(|name| SessionConfigSelectOption::new(name.clone(), name.clone()))
            .collect();
        let mut nets = vec![Network::Off];
        for net in [&ceiling.net, &self.net] {
            if !nets.contains(net) {
                nets.push(net.clone());
            }
        }
        let nets: Vec<_> =
            nets.iter().map(|net| SessionConfigSelectOption::new(net.flag(), net.to_string())).collect();
        vec![
            SessionConfigOption::select(MODE, "Mode", self.mode_word(), modes)
                .description("What happens when an action needs more access".to_owned())
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(MODEL, "Model", self.model.clone(), names)
                .category(SessionConfigOptionCategory::Model),
            SessionConfigOption::select(NETWORK, "Network", self.net.flag(), nets)
                .description("Network access of commands, never more than at the session's start".to_owned())
                .category(SessionConfigOptionCategory::Other("_network".to_owned())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(mode: ApprovalMode) -> Ceiling {
        let models = vec!["m".to_owned(), "n".to_owned()];
        Ceiling { mode, net: Network::Off, models }
    }

    #[test]
    fn nothing_wider_than_the_start_can_be_chosen() {
        let words = |mode| {
            let ceiling = ceiling(mode);
            ["deny", "ask", "auto", "yolo"]
                .into_iter()
                .filter(|word| ceiling.mode(word).is_ok())
                .collect::<Vec<_>>()
        };
        assert_eq!(words(ApprovalMode::Deny), ["deny"]);
        assert_eq!(words(ApprovalMode::Ask), ["deny", "ask"]);
        assert_eq!(words(ApprovalMode::Auto), ["deny", "ask", "auto"]);
        assert!(ceiling(ApprovalMode::Auto).network("on").is_err());
        let open = Ceiling { net: Network::On, ..ceiling(ApprovalMode::Ask) };
        assert_eq!((open.network("on"), open.network("off")), (Ok(Network::On), Ok(Network::Off)));
        assert!(open.network("docs.example").is_err());
    }

    #[test]
    fn the_present_values_are_among_the_options() {
        let settled =
            Settled { mode: ApprovalMode::Ask, plans: true, net: Network::On, model: "x".to_owned() };
        let options = serde_json::to_value(settled.options(&ceiling(ApprovalMode::Ask))).unwrap();
        for option in options.as_array().unwrap() {
            let values = option["options"].as_array().unwrap();
            assert!(values.iter().any(|value| value["value"] == option["currentValue"]), "{option}");
        }
    }
}
