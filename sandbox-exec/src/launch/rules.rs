//! Landlock rules of a program, added while the program's process prepares itself.
//!
//! The ruleset is created before the fork. The parent adds the rules: a rule is for an inode, so the mount through
//! which the parent opens the path does not matter. The child waits, and adds only rules for directories that the full
//! tier replaces (its own `/tmp`, `/dev` and `/proc`).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ipc::codec;
use ipc::confinement::{Confinement, Tier};
use ipc::path::WirePath;
use ipc::rights::Rights;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use serde::{Deserialize, Serialize};

use super::at;
use super::ruleset::Ruleset;
use crate::attempt;
use crate::compile::{self, Access, PathRule, Plan};
use crate::domain::{Domain, Opened};
use crate::namespace::layout::{Layout, TMP};
use crate::platform::Platform;
use crate::private::Private;
use crate::stage::{Failure, Stage};
use crate::terminal;
use crate::tree::Host;

#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) confinement: Cow<'a, Confinement>,
    pub(crate) tier: Tier,
    pub(crate) platform: Platform,
    own_tmp: bool,
    /// Host paths that a private `/tmp` shows read-only.
    pub(super) read_only: Vec<PathBuf>,
    /// Files that the tier replaces so that the program sends its host lookups to the broker.
    resolving: Vec<PathBuf>,
    /// `/dev/shm` and `/dev/pts`, if they belong to this container alone. Empty in the full tier, which mounts its own.
    pub(super) private: Private,
}

#[derive(Debug, Serialize, Deserialize)]
struct Word {
    added: u32,
    hidden_witness: Option<WirePath>,
    /// Rules for the child to add: path, access, and [`PathRule`]'s `named` and `file`.
    left: Vec<(WirePath, Access, bool, bool)>,
}

#[derive(Debug)]
pub(super) struct Awaiting {
    domain: Domain,
    to: File,
}

#[derive(Debug)]
pub(super) struct Making<'a> {
    seen: &'a Seen<'a>,
    child: Awaiting,
    word: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Awaited {
    domain: Domain,
    word: File,
}

impl<'a> Seen<'a> {
    /// Describes a program in the floor tier, whose calls are mediated if the kernel has seccomp listeners.
    pub(crate) fn floor(confinement: &'a Confinement, platform: Platform) -> Self {
        let tier = if platform.listener { Tier::Floor } else { Tier::FloorUnmediated };
        Self {
            confinement: Cow::Borrowed(confinement),
            tier,
            platform,
            own_tmp: false,
            read_only: vec![],
            resolving: vec![],
            private: Private::find(confinement),
        }
    }

    /// Describes a program in the full tier. Leaves out hidden paths that the program's tree `layout` lacks.
    pub(crate) fn full(confinement: &Confinement, platform: Platform, layout: &Layout) -> Self {
        let mut confinement = confinement.in_tier(Tier::Full);
        confinement.rights.hidden.retain(|hidden| layout.shows(hidden.as_path()));
        let own_tmp = layout.tmp.is_some();
        let confinement = Cow::Owned(confinement);
        let resolving = layout.resolving.iter().map(|(path, _)| path.clone()).collect();
        let read_only = layout.roots.iter().filter(|root| own_tmp && !root.writable);
        let read_only = read_only.map(|root| root.path.clone()).collect();
        let private = Private::default();
        Self { confinement, tier: Tier::Full, platform, own_tmp, read_only, resolving, private }
    }

    pub(crate) fn hidden_in_own_tmp(&self) -> impl Iterator<Item = &WirePath> {
        let tmp = WirePath::from(TMP);
        let hidden = self.confinement.rights.hidden.iter().filter(|_| self.own_tmp);
        hidden.filter(move |hidden| hidden.is_within(&tmp))
    }

    pub(super) fn plan(&self, host: &Host) -> Result<Plan, Failure> {
        let Confinement { rights, project, temp, hidden_files, terminal, .. } = &*self.confinement;
        let rights = with_project(rights, project);
        // The parent of the temp directory is hidden, because other temp directories lie there.
        let plan = compile::compile(&rights, temp.as_ref(), hidden_files, self.tier, host);
        let mut plan = plan.map_err(at(Stage::Rules))?;
        plan.allow_private(self.private.rules());
        if *terminal {
            plan.allow_terminal(terminal::paths(self.tier));
        }
        if self.tier == Tier::Full {
            plan.hidden_witness = plan.hidden_witness.filter(|path| attempt::is_readable(path));
        }
        Ok(plan)
    }

    pub(super) fn is_the_hosts(&self, path: &Path) -> bool {
        let replaced = |place| path.starts_with(place);
        let is_own = replaced("/dev") || replaced("/proc") || self.own_tmp && replaced(TMP);
        self.tier != Tier::Full || !(is_own || self.resolving.iter().any(|own| own == path))
    }
}

pub(super) fn begin(ruleset: &Ruleset) -> Result<(Awaiting, Awaited), Failure> {
    let domain = Domain::empty(&ruleset.net, ruleset.tier, ruleset.platform).map_err(at(Stage::Rules))?;
    let (word, to) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    let theirs = domain.try_clone().map_err(at(Stage::Start))?;
    Ok((Awaiting { domain, to: to.into() }, Awaited { domain: theirs, word: word.into() }))
}

impl Awaiting {
    pub(super) fn domain(&self) -> Result<Domain, Failure> {
        self.domain.try_clone().map_err(at(Stage::Start))
    }
}

impl<'a> Making<'a> {
    pub(super) fn new(seen: &'a Seen<'a>, child: Awaiting) -> Self {
        Self { seen, child, word: vec![] }
    }

    pub(super) fn plan(&self) -> Result<Plan, Failure> {
        self.seen.plan(&Host::default())
    }

    /// Adds the rules for files of the host, and leaves the other rules to the child. Returns the files that it opened.
    pub(super) fn add(&mut self, plan: Plan) -> Result<Opened, Failure> {
        let (ours, left): (Vec<_>, Vec<_>) =
            plan.rules.into_iter().partition(|rule| self.seen.is_the_hosts(&rule.path));
        let domain = &mut self.child.domain;
        let opened = domain.add_canonical(&ours).map_err(at(Stage::Rules))?;
        let word = Word {
            added: domain.rules(),
            hidden_witness: plan.hidden_witness.map(WirePath::from),
            left: left
                .into_iter()
                .map(|rule| (rule.path.into(), rule.access, rule.named, rule.file))
                .collect(),
        };
        self.word = codec::encode_unbounded(&word).map_err(at(Stage::Rules))?;
        Ok(opened)
    }

    pub(super) fn tell(mut self) -> Result<(), Failure> {
        match self.child.to.write_all(&self.word) {
            // The child is gone: its report names the cause.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(at(Stage::Start)),
        }
    }
}

impl Awaited {
    pub(crate) fn domain(&self) -> Result<Domain, Failure> {
        self.domain.try_clone().map_err(at(Stage::Start))
    }

    /// Waits for the parent's message, and adds the rules in it. Returns the domain, and a plan that has only the rules
    /// that were added. Fails if the parent has ended.
    pub(crate) fn finish(mut self, ruleset: &Ruleset) -> Result<(Domain, Plan), Failure> {
        let mut bytes = vec![];
        self.word.read_to_end(&mut bytes).map_err(at(Stage::Rules))?;
        if bytes.is_empty() {
            return Err(Stage::Parent.failed("the process that compiles the rules is gone"));
        }
        let word: Word = codec::decode_bounded(&bytes).map_err(at(Stage::Rules))?;
        let rule = |(path, access, named, file): (WirePath, Access, bool, bool)| PathRule {
            path: path.into(),
            access,
            named,
            file,
        };
        let rules: Vec<_> = word.left.into_iter().map(rule).collect();
        let mut domain = self.domain;
        domain.count(word.added);
        domain.add(&rules).map_err(at(Stage::Rules))?;
        let hidden_witness = word.hidden_witness.map(PathBuf::from);
        let plan = Plan { rules, net: ruleset.net.clone(), tier: ruleset.tier, hidden_witness };
        Ok((domain, plan))
    }
}

/// Returns the rights with the project as another read root if it is in `/dev`, which a read root `/` does not include.
fn with_project<'a>(rights: &'a Rights, project: &WirePath) -> Cow<'a, Rights> {
    let mut rights = Cow::Borrowed(rights);
    if project.is_within(&"/dev".into()) {
        rights.to_mut().read.push(project.clone());
    }
    rights
}

#[cfg(test)]
mod tests {
    use ipc::confinement::Confinement;

    use super::*;

    #[test]
    fn what_the_full_tier_replaces_is_not_the_hosts() {
        let confinement = Confinement::new(Rights::default(), "/p".into());
        let seen = |tier, own_tmp| Seen {
            confinement: Cow::Borrowed(&confinement),
            tier,
            platform: Platform::probe(),
            own_tmp,
            read_only: vec![],
            resolving: vec!["/etc/hosts".into()],
            private: Private::default(),
        };
        let hosts = |seen: Seen<'_>| {
            ["/", "/tmp", "/tmp/x", "/tmpx", "/dev/null", "/proc", "/sys", "/etc", "/etc/hosts"]
                .map(|path| seen.is_the_hosts(Path::new(path)))
        };
        assert_eq!(hosts(seen(Tier::Floor, false)), [true; 9]);
        assert_eq!(hosts(seen(Tier::Full, false)), [true, true, true, true, false, false, true, true, false]);
        assert_eq!(
            hosts(seen(Tier::Full, true)),
            [true, false, false, true, false, false, true, true, false]
        );
    }
}
