use ipc::denial::Denial;
use ipc::id::CallId;
use protocol::event::{EventKind, RestoredPlace};

use crate::front::demo::poison::{Attack, index};
use crate::process::attempt::GOT_THROUGH;

#[derive(Debug, Default)]
pub(super) struct Observed {
    running: Option<(usize, CallId)>,
    output: String,
    denials: Vec<Denial>,
    restored: Vec<RestoredPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttackRow {
    pub(super) title: &'static str,
    /// The way in which the attack was stopped. The error describes the attack's harm, or says that nothing stopped it.
    pub(super) outcome: Result<AttackEnd, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttackEnd {
    /// The sandbox denied the attack. The text names the responsible part of the sandbox.
    Blocked(String),
    /// The attack changed a file, which was restored at the end of the command.
    Undone(String),
}

impl Observed {
    /// Records an event. If the event ends an attack, returns the index of the attack and what was observed of it.
    pub(super) fn take(&mut self, event: &EventKind) -> Option<(usize, Self)> {
        match event {
            EventKind::ToolCallStarted { call, tool_use, .. } => {
                self.running = index(tool_use.as_str()).map(|index| (index, *call));
            }
            EventKind::ToolCallFinished { call, content, .. } if self.is_running(*call) => {
                self.output.clone_from(content);
            }
            EventKind::Denied { denial, .. } => self.denials.push(denial.clone()),
            EventKind::Restored { places, .. } => self.restored.extend(places.iter().cloned()),
            EventKind::ModelRequested { .. } => return self.take_over(),
            _ => {}
        }
        None
    }

    pub(super) fn take_over(&mut self) -> Option<(usize, Self)> {
        let observed = std::mem::take(self);
        observed.running.map(|(index, _)| (index, observed))
    }

    fn is_running(&self, call: CallId) -> bool {
        self.running.is_some_and(|(_, running)| running == call)
    }

    /// Judges an attack. `harm` is what was seen outside the sandbox. The output must not contain any of `secrets`.
    pub(super) fn row(&self, attack: &Attack, harm: Option<String>, secrets: &[String]) -> AttackRow {
        let outcome = match self.breach(attack, harm, secrets) {
            Some(breach) => Err(breach),
            None => self
                .end(attack)
                .ok_or_else(|| "the attack was not tried, or nothing blocked the attack".to_owned()),
        };
        AttackRow { title: attack.title, outcome }
    }

    fn breach(&self, attack: &Attack, harm: Option<String>, secrets: &[String]) -> Option<String> {
        let has_leaked = secrets.iter().any(|secret| self.output.contains(secret));
        let has_denial = !attack.needs_denial || !self.denials.is_empty();
        let breaches = [
            harm,
            has_leaked.then(|| "a secret was read".to_owned()),
            self.output.contains(GOT_THROUGH).then(|| "the attack succeeded".to_owned()),
            (!has_denial).then(|| "nothing blocked the attack".to_owned()),
        ];
        breaches.into_iter().flatten().next()
    }

    fn end(&self, attack: &Attack) -> Option<AttackEnd> {
        match self.restored.first() {
            Some(place) => Some(AttackEnd::Undone(format!("tripwire: {} ({})", place.path, place.what))),
            None => self.layer(attack).map(AttackEnd::Blocked),
        }
    }

    /// Returns the part of the sandbox that stopped the attack, and the evidence. `None` if no evidence shows such a
    /// part.
    fn layer(&self, attack: &Attack) -> Option<String> {
        if !self.output.contains(attack.tried) {
            return None;
        }
        if let Some(denial) = self.denials.first() {
            return Some(format!("{}: {} {}", denial.layer, denial.operation, denial.object));
        }
        let known = attack.errors.iter().find(|(error, _)| self.output.contains(error));
        known.map(|(_, layer)| (*layer).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use ipc::denial::{Grade, Layer, Object, Operation};

    use super::*;

    fn attack() -> Attack {
        let errors = &[("No such", "PID namespace")];
        Attack { title: "read", command: String::new(), tried: "(2)", needs_denial: false, errors }
    }

    fn said(output: &str) -> Observed {
        Observed { output: output.to_owned(), ..Observed::default() }
    }

    fn denied(output: &str) -> Observed {
        let denial = Denial {
            layer: Layer::Landlock,
            operation: Operation::Read,
            object: Object::Shared("it".to_owned()),
            program: None,
            missing_right: ipc::missing_right::MissingRight::Accept.into(),
            grant: None,
            grade: Grade::Likely,
            errno: None,
        };
        Observed { denials: vec![denial], ..said(output) }
    }

    fn blocked(by: &str) -> AttackEnd {
        AttackEnd::Blocked(by.to_owned())
    }

    fn outcome(observed: &Observed, attack: &Attack) -> Result<AttackEnd, String> {
        observed.row(attack, None, &["canary".to_owned()]).outcome
    }

    #[test]
    fn an_attack_is_blocked_only_by_a_layer_that_is_known() {
        let not_tried = Err("the attack was not tried, or nothing blocked the attack".to_owned());
        assert_eq!(outcome(&denied("read(2): no"), &attack()), Ok(blocked("Landlock: read it")));
        assert_eq!(outcome(&said("read(2): No such file"), &attack()), Ok(blocked("PID namespace")));
        for observed in [said(""), said("read(2): odd"), said("No such file"), denied("not found")] {
            assert_eq!(outcome(&observed, &attack()), not_tried, "{observed:?}");
        }
    }

    #[test]
    fn harm_weighs_more_than_a_denial() {
        let breach = |observed: &Observed| outcome(observed, &attack()).unwrap_err();
        assert_eq!(breach(&denied("read(2): the canary")), "a secret was read");
        assert_eq!(breach(&denied("read(2)\nGOT THROUGH")), "the attack succeeded");
        let seen = denied("read(2)").row(&attack(), Some("the server was reached".to_owned()), &[]);
        assert_eq!(seen.outcome, Err("the server was reached".to_owned()));
        let silent = Attack { needs_denial: true, ..attack() };
        assert_eq!(
            outcome(&said("read(2): No such file"), &silent),
            Err("nothing blocked the attack".to_owned())
        );
    }
}
