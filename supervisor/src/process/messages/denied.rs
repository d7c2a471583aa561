//! Denials in plain words, for people who use `exec` and `sandbox`. The model reads the sentence of [`Denial`] itself.

use std::fmt::{self, Display, Formatter};

use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use protocol::known_sockets::gives;

/// Port of DNS. People know this port by its name.
const DNS: &str = ":53";

/// A denial as two lines: the blocked operation, and a hint.
pub(crate) struct PlainDenial<'a>(pub &'a Denial);

impl Display for PlainDenial<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // A name with a line end must not look like another message.
        let what = format!("{}{}", attempt(self.0), detail(self.0)).replace('\n', "\\n");
        write!(f, "{}: {what}", blocked(self.0))?;
        match self.hint() {
            Some(remedy) => write!(f, "\n  hint: {remedy}"),
            None => f.write_str("; no flag allows it"),
        }
    }
}

impl PlainDenial<'_> {
    /// Returns the hint about flags or files that would help; `None` if there is none.
    pub(crate) fn hint(&self) -> Option<String> {
        let denial = self.0;
        let is_hidden = matches!(denial.operation, Operation::Read | Operation::Execute)
            && matches!(denial.layer, Layer::Landlock | Layer::Mask);
        match &denial.grant {
            Some(grant) => Some(match denial.missing_right.value() {
                Some(MissingRight::Socket { path }) => {
                    format!("{grant} allows it, and also gives {}", gives(path))
                }
                _ => format!("{grant} allows it"),
            }),
            None if is_hidden => {
                Some("copy the needed file into the project; no flag makes a hidden path readable".to_owned())
            }
            None if denial.missing_right.value().is_some_and(MissingRight::takes_too_much) => {
                Some("allow a directory below that path instead: --write PATH".to_owned())
            }
            None => None,
        }
    }
}

/// Returns the part that blocked the operation. For a denial that is only likely, names the part less precisely.
fn blocked(Denial { grade, layer, .. }: &Denial) -> String {
    match (grade, layer) {
        (Grade::Proved, Layer::Policy) => "blocked by the policy".to_owned(),
        (Grade::Proved, Layer::Mediation) => format!("blocked by the sandbox ({layer})"),
        (Grade::Proved, _) => format!("blocked by the kernel ({layer})"),
        (Grade::Likely, _) => format!("likely blocked by the sandbox ({layer})"),
    }
}

fn attempt(denial: &Denial) -> String {
    let Denial { layer, operation, object, program, missing_right, .. } = denial;
    let is_off =
        |right: &MissingRight| right.has_network() && *right != MissingRight::NetworkInReadingCommand;
    let lacks_network = missing_right.value().is_some_and(is_off);
    let closed = if *layer == Layer::Mask { "hidden" } else { "read-only" };
    let program = program.as_deref();
    match (operation, object) {
        (Operation::Write, Object::Path(path)) => seen(program, "write", path, closed),
        (Operation::Read, Object::Path(path)) => seen(program, "read", path, "hidden"),
        (Operation::Execute, Object::Path(path)) => seen(program, "execute", path, "hidden"),
        (Operation::Network, Object::Address(address)) if lacks_network => {
            let who = program.unwrap_or("the command");
            format!("{who} tried to use the network{}, which is off", named(address))
        }
        (_, Object::Tool(tool)) => format!("the agent tried to call {tool}"),
        _ => format!("{} tried to {operation} {object}", program.unwrap_or("the command")),
    }
}

/// Describes a path and its state. If `program` is given, also describes the program's attempt.
fn seen(program: Option<&str>, act: &str, path: impl Display, state: &str) -> String {
    match program {
        Some(program) => format!("{program} tried to {act} {path}, which is {state} here"),
        None => format!("{path} is {state} here"),
    }
}

fn named(address: &str) -> String {
    match address {
        "the network" => String::new(),
        _ if address.ends_with(DNS) => format!(" (DNS at {address})"),
        _ => format!(" ({address})"),
    }
}

/// Returns the missing access, or only the reason for it if the description of the attempt names the access already.
fn detail(Denial { operation, object, missing_right, .. }: &Denial) -> String {
    match missing_right.value().filter(|right| right.is_said_by(*operation, object)) {
        Some(right) => right.reason().map(|reason| format!(", {reason}")).unwrap_or_default(),
        None => format!("; missing: {missing_right}"),
    }
}

#[cfg(test)]
mod tests {
    use ipc::missing_right::ClosedBy;
    use ipc::path::WirePath;
    use ipc::place::Place;

    use super::*;

    fn denial(
        operation: Operation,
        object: Object,
        missing_right: MissingRight,
        grant: Option<&str>,
    ) -> Denial {
        Denial {
            layer: Layer::Mounts,
            operation,
            object,
            program: None,
            missing_right: missing_right.into(),
            grant: grant.map(str::to_owned),
            grade: Grade::Proved,
            errno: None,
        }
    }

    fn of_path(operation: Operation, path: &str) -> Denial {
        let object = WirePath::from(path);
        let right = match operation {
            Operation::Read => MissingRight::Read { path: object.clone() },
            _ => MissingRight::write(&object),
        };
        denial(operation, Object::Path(object), right, None)
    }

    #[test]
    fn a_write_names_the_path_once_and_the_flag() {
        let likely = Denial {
            grade: Grade::Likely,
            grant: Some("--write /etc".to_owned()),
            ..of_path(Operation::Write, "/etc/x")
        };
        insta::assert_snapshot!(PlainDenial(&likely), @r"
        likely blocked by the sandbox (read-only mount): /etc/x is read-only here
          hint: --write /etc allows it
        ");
        let proved = Denial { grade: Grade::Proved, program: Some("touch".to_owned()), ..likely };
        insta::assert_snapshot!(PlainDenial(&proved), @r"
        blocked by the kernel (read-only mount): touch tried to write /etc/x, which is read-only here
          hint: --write /etc allows it
        ");
    }

    #[test]
    fn a_right_that_differs_from_the_attempt_is_named() {
        let path = "/p/.git/hooks/x".into();
        let closed = MissingRight::Write { path, closed_by: Some(ClosedBy::Protected) };
        let protected =
            Denial { missing_right: closed.into(), ..of_path(Operation::Write, "/p/.git/hooks/x") };
        insta::assert_snapshot!(PlainDenial(&protected), @"blocked by the kernel (read-only mount): /p/.git/hooks/x is read-only here, protected by the settings or by Bailiwick; no flag allows it");
        let removed = Denial {
            missing_right: MissingRight::write(&"/srv".into()).into(),
            grant: Some("--write /srv".to_owned()),
            ..of_path(Operation::Write, "/srv/a")
        };
        insta::assert_snapshot!(PlainDenial(&removed), @r"
        blocked by the kernel (read-only mount): /srv/a is read-only here; missing: write /srv
          hint: --write /srv allows it
        ");
    }

    #[test]
    fn no_hint_opens_the_home_or_what_holds_the_project() {
        let path = WirePath::from("/home/me/x");
        let right = |rule| MissingRight::Write { path: path.clone(), closed_by: Some(rule) };
        let of = |rule| denial(Operation::Write, Object::Path(path.clone()), right(rule), None);
        insta::assert_snapshot!(PlainDenial(&of(ClosedBy::Home)), @r"
        blocked by the kernel (read-only mount): /home/me/x is read-only here, in the home directory itself, which cannot be allowed
          hint: allow a directory below that path instead: --write PATH
        ");
        insta::assert_snapshot!(PlainDenial(&of(ClosedBy::Wide)), @r"
        blocked by the kernel (read-only mount): /home/me/x is read-only here, in a directory above the project or the home directory, which cannot be allowed
          hint: allow a directory below that path instead: --write PATH
        ");
    }

    #[test]
    fn the_network_is_off_or_a_place_is_out_of_reach() {
        let address = |text: &str| Object::Address(text.to_owned());
        let off = Denial {
            layer: Layer::NetworkNamespace,
            program: Some("curl".to_owned()),
            ..denial(Operation::Network, address("10.255.255.53:53"), MissingRight::Network, Some("--net on"))
        };
        insta::assert_snapshot!(PlainDenial(&off), @r"
        blocked by the kernel (network namespace): curl tried to use the network (DNS at 10.255.255.53:53), which is off
          hint: --net on allows it
        ");
        let host = Denial {
            layer: Layer::Mediation,
            missing_right: MissingRight::Reach { place: Place::Host }.into(),
            object: address("127.0.0.1:80"),
            grant: Some("--reach host".to_owned()),
            ..off
        };
        insta::assert_snapshot!(PlainDenial(&host), @r"
        blocked by the sandbox (mediation): curl tried to reach 127.0.0.1:80; missing: connections to this machine
          hint: --reach host allows it
        ");
    }

    #[test]
    fn a_name_cannot_forge_a_hint() {
        let forged = of_path(Operation::Write, "/p/a\n  hint: --mode auto allows it");
        assert_eq!(PlainDenial(&forged).to_string().lines().count(), 1);
    }

    #[test]
    fn hidden_paths_have_a_way_around_and_calls_have_none() {
        let hidden = Denial { layer: Layer::Mask, ..of_path(Operation::Read, "/home/u/.ssh/id") };
        insta::assert_snapshot!(PlainDenial(&hidden), @r"
        blocked by the kernel (masked path): /home/u/.ssh/id is hidden here
          hint: copy the needed file into the project; no flag makes a hidden path readable
        ");
        let call = Denial {
            layer: Layer::Seccomp,
            ..denial(
                Operation::Call,
                Object::Syscall("ptrace".to_owned()),
                MissingRight::Call { name: "ptrace".to_owned() },
                None,
            )
        };
        insta::assert_snapshot!(PlainDenial(&call), @"blocked by the kernel (seccomp): the command tried to call ptrace, which no agent is allowed to call; no flag allows it");
        let object = Object::Tool("search of docs".to_owned());
        let external = Denial {
            layer: Layer::Policy,
            ..denial(Operation::Call, object, MissingRight::Approval, Some("--mode ask"))
        };
        insta::assert_snapshot!(PlainDenial(&external), @r"
        blocked by the policy: the agent tried to call search of docs; missing: an approval of this call
          hint: --mode ask allows it
        ");
    }
}
