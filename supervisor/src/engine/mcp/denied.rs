use ipc::refusal::{Act, Refusal, Target};

use crate::process::messages::one_line;

const DENIALS: usize = 5;

/// Returns lines about accesses that the sandbox denied, at most [`DENIALS`] and each once.
pub(crate) fn denied(refused: &[Refusal]) -> Vec<String> {
    let line = |refusal: &Refusal| {
        let what = attempt(refusal.act, &refusal.object);
        one_line(&format!("blocked by the sandbox: {} tried to {what}", refusal.program))
    };
    let mut lines: Vec<String> = Vec::new();
    for line in refused.iter().map(line) {
        if lines.len() < DENIALS && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns a clause about a denied access, which follows the words `tried to`.
fn attempt(act: Act, object: &Target) -> String {
    match (act, object) {
        (Act::Bind, Target::Internet(address, _)) => format!("listen at {address}"),
        (Act::Accept, Target::Internet(address, _)) => format!("let {address} in"),
        (_, Target::Internet(address, _)) => format!("reach {address}"),
        (_, Target::Host { name, port }) => format!("reach {name}:{port}"),
        (Act::Bind, Target::Socket(path)) => format!("create the socket {path}"),
        (_, Target::Socket(path)) => format!("use the socket {path} of another program"),
        (_, Target::Abstract(name)) => {
            format!("use the abstract socket @{} of another program", String::from_utf8_lossy(name))
        }
        (_, Target::File(path)) => format!("change mode, owner, times or attributes of {path}"),
        (_, Target::Process(process)) => format!("signal process {process}"),
        (_, Target::Object(object)) => format!("use {object}"),
    }
}

#[cfg(test)]
mod tests {
    use ipc::place::Place;

    use super::*;

    #[test]
    fn denials_are_told_in_words() {
        let address = "1.1.1.1:443".parse().unwrap();
        let internet = || Target::Internet(address, Place::Elsewhere);
        let host = Target::Host { name: "a.example".parse().unwrap(), port: 443 };
        let acts = [
            (Act::Connect, internet()),
            (Act::Bind, internet()),
            (Act::Accept, internet()),
            (Act::Connect, host),
            (Act::Connect, Target::Socket("/run/x".into())),
            (Act::Bind, Target::Socket("/run/x".into())),
            (Act::Send, Target::Abstract(b"x\x1b[2J".to_vec())),
            (Act::Change, Target::File("/etc/passwd".into())),
            (Act::Signal, Target::Process(7)),
            (Act::Use, Target::Object("shared memory 3".to_owned())),
        ];
        let refusal = |(act, object)| Refusal {
            process: 1,
            program: "sh\n".to_owned(),
            act,
            object,
            errno: 13,
            count: 1,
            untold: 0,
        };
        let twice = acts.map(|act| [refusal(act.clone()), refusal(act)]);
        let said: Vec<_> = twice.chunks(DENIALS).flat_map(|some| denied(&some.concat())).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        blocked by the sandbox: sh\n tried to reach 1.1.1.1:443
        blocked by the sandbox: sh\n tried to listen at 1.1.1.1:443
        blocked by the sandbox: sh\n tried to let 1.1.1.1:443 in
        blocked by the sandbox: sh\n tried to reach a.example:443
        blocked by the sandbox: sh\n tried to use the socket /run/x of another program
        blocked by the sandbox: sh\n tried to create the socket /run/x
        blocked by the sandbox: sh\n tried to use the abstract socket @x\u{1b}[2J of another program
        blocked by the sandbox: sh\n tried to change mode, owner, times or attributes of /etc/passwd
        blocked by the sandbox: sh\n tried to signal process 7
        blocked by the sandbox: sh\n tried to use shared memory 3
        ");
    }
}
