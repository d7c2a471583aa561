use std::fmt::{self, Display, Formatter};

use gate::modes::PermitRow;

use super::address::AddressExplained;
use super::answer::{ExplainAnswer, ExplainVerdict, TriedAct};
use super::command::{CommandExplained, ExplainProgram, ExplainedCall, FoundProgram};
use super::path::PathExplained;
use super::{ExplainedRights, Explanation};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.said {
            ExplainedRights::Path(path) => path.fmt(f)?,
            ExplainedRights::Address(address) => address.fmt(f)?,
            ExplainedRights::Command(command) => command.fmt(f)?,
        }
        let Self { tier, mode, rights, .. } = self;
        writeln!(f, "for a session here: {tier} tier · mode {mode} · access: {rights}")?;
        self.mode_permits.iter().try_for_each(|row| {
            let PermitRow { agent, project, beyond, approvals, .. } = row;
            writeln!(f, "  {agent:<11} project: {project} · other access: {beyond} · approvals: {approvals}")
        })
    }
}

impl Display for PathExplained {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(inside) = &self.in_project {
            match inside.as_bytes() {
                b"" => write!(f, " (the project)")?,
                _ => write!(f, " ({inside} in the project)")?,
            }
        }
        if let Some(real) = &self.leads_to {
            write!(f, ", which leads to {real}")?;
        }
        writeln!(f)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        row(f, "read", &self.read)?;
        row(f, "write", &self.write)?;
        row(f, "execute", &self.execute)?;
        self.connect.iter().try_for_each(|answer| row(f, "connect", answer))
    }
}

impl Display for AddressExplained {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(place) = self.place {
            write!(f, ": {place}")?;
        }
        writeln!(f)?;
        row(f, "connect", &self.connect)
    }
}

impl Display for CommandExplained {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.command)?;
        match &self.programs {
            None => writeln!(
                f,
                "  note: bash may read this command differently than Bailiwick: no prefix can allow it"
            )?,
            Some(programs) => programs.iter().try_for_each(|program| program.fmt(f))?,
        }
        self.calls.iter().try_for_each(|ExplainedCall { declares, answer }| {
            writeln!(f, "  declared: {declares}")?;
            row(f, "  runs", answer)
        })?;
        if let Some(origin) = &self.preapproved {
            writeln!(f, "  approved in advance if the command needs no network ({origin})")?;
        }
        if let Some(prefix) = &self.offered_prefix {
            writeln!(f, "  can be allowed for the session: {}", prefix.join(" "))?;
        }
        Ok(())
    }
}

impl Display for ExplainProgram {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, found } = self;
        match found {
            FoundProgram::Shell => writeln!(f, "  {name}: part of the shell itself"),
            FoundProgram::File { path } => writeln!(f, "  {name}: {path}"),
            FoundProgram::Hidden { path } => writeln!(f, "  {name}: not found, because {path} is hidden"),
            FoundProgram::Nothing => writeln!(f, "  {name}: not found"),
        }
    }
}

/// Writes an action and its answer, with the reasons below.
fn row(f: &mut Formatter<'_>, act: &str, answer: &ExplainAnswer) -> fmt::Result {
    let ExplainAnswer { verdict, because, origin, layer, grant, tried, .. } = answer;
    write!(f, "  {act:<8} {:<8} {because}", verdict.as_str())?;
    if let Some(origin) = origin {
        write!(f, " ({origin})")?;
    }
    if let Some(layer) = layer {
        write!(f, " · blocked by: {layer}")?;
    }
    if *verdict != ExplainVerdict::Allowed {
        match grant {
            Some(grant) => write!(f, " · to allow: {grant}")?,
            None if *verdict == ExplainVerdict::Denied => write!(f, " · this cannot be allowed")?,
            None => {}
        }
    }
    writeln!(f)?;
    match tried.as_ref().and_then(|tried| remark(act, *verdict, tried)) {
        Some(remark) => writeln!(f, "  {:<8} {:<8} {remark}", "", ""),
        None => Ok(()),
    }
}

/// Describes the result of an attempt; `None` if the answer itself already implies it.
fn remark(act: &str, verdict: ExplainVerdict, tried: &TriedAct) -> Option<String> {
    let possible = match act {
        "read" => "readable",
        "write" => "writable",
        "execute" => "executable",
        _ => "permitted",
    };
    match (verdict, tried) {
        (ExplainVerdict::Allowed | ExplainVerdict::Depends, TriedAct::Done)
        | (_, TriedAct::Refused { .. }) => None,
        (_, TriedAct::Done) => {
            Some("the attempt in the sandbox SUCCEEDED: do not run agents here, and report this".to_owned())
        }
        (_, TriedAct::NotPermitted { error }) if error == "EROFS" => {
            Some(format!("not {possible} (the file system is read-only, EROFS)"))
        }
        (_, TriedAct::NotPermitted { error }) => Some(format!("not {possible} (file mode, {error})")),
        (_, TriedAct::Failed { error }) if error == "ENOENT" => {
            Some("the attempt in the sandbox did not find the path (ENOENT)".to_owned())
        }
        (_, TriedAct::Failed { error }) => {
            Some(format!("the attempt in the sandbox failed for another reason ({error})"))
        }
        (_, TriedAct::Untried { why }) => Some(format!("not tried: {why}")),
    }
}
