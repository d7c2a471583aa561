//! The page of promises as text: a line for each promise, with a hint below those that do not hold.

use std::fmt::{self, Display, Formatter, Write as _};
use std::io::Write;

use super::{HeldBy, PromiseHere, PromisesPage};

impl PromisesPage {
    pub(crate) fn print(&self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        write!(out, "{self}")?;
        out.flush()
    }
}

impl Display for PromisesPage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tier = self.tier.map_or_else(|| "no tier".to_owned(), |tier| format!("the {tier} tier"));
        writeln!(
            f,
            "The promises of SECURITY.md in {tier}, on Linux {}, Landlock ABI {}:",
            self.kernel, self.landlock_abi
        )?;
        for promise in &self.promises {
            promise.fmt(f)?;
        }
        let open = self.promises.iter().filter(|promise| promise.held_by == HeldBy::Nobody).count();
        writeln!(f, "{} of {} hold here.", self.promises.len() - open, self.promises.len())
    }
}

impl Display for PromiseHere {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let holder = match self.held_by {
            HeldBy::Kernel => "kernel",
            HeldBy::Broker => "broker",
            HeldBy::Supervisor => "outside",
            HeldBy::Nobody => "OPEN",
        };
        write!(f, "{holder:<8}{}: {}", self.name, self.why)?;
        match self.denied.len() {
            0 => f.write_char('\n')?,
            1 => writeln!(f, " (1 attempt denied)")?,
            many => writeln!(f, " ({many} attempts denied)")?,
        }
        match &self.remedy {
            Some(remedy) => writeln!(f, "        hint: {remedy}"),
            None => Ok(()),
        }
    }
}
