//! Rules of a program, compiled and added while the program's process prepares itself.
//!
//! Both tiers make the Landlock ruleset before the fork, so that both processes have its descriptor. The
//! parent compiles, opens the files of the rules, and adds the rules; the child waits for that before it
//! enters the domain. A rule is on an inode, whichever mount it was reached by. The child adds only the rules
//! for trees that the full tier replaces (its own `/tmp`, `/dev` and `/proc`), which no other process sees.

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

/// Confinement as a tier sees it, the source of its rules.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) confinement: Cow<'a, Confinement>,
    pub(crate) tier: Tier,
    pub(crate) platform: Platform,
    /// True if the program has a `/tmp` of its own.
    own_tmp: bool,
    /// Places that were found to be private, if the tier itself makes none private.
    pub(super) private: Private,
}

/// Message to the child once the parent is done.
#[derive(Debug, Serialize, Deserialize)]
struct Word {
    /// Number of rules added already.
    added: u32,
    hidden_witness: Option<WirePath>,
    /// Rules that are left for the child: path, access, must exist, is a file.
    left: Vec<(WirePath, Access, bool, bool)>,
}

/// Parent's end of the channel to the child.
#[derive(Debug)]
pub(super) struct Awaiting {
    domain: Domain,
    to: File,
}

/// Rules of a child, while they are made.
#[derive(Debug)]
pub(super) struct Making<'a> {
    seen: &'a Seen<'a>,
    child: Awaiting,
    /// Encoded message.
    word: Vec<u8>,
}

/// Child's end of the channel.
#[derive(Debug)]
pub(crate) struct Awaited {
    domain: Domain,
    word: File,
}

impl<'a> Seen<'a> {
    /// Returns the floor tier's view: mediated if the kernel gives the broker a listener.
    pub(crate) fn floor(confinement: &'a Confinement, platform: Platform) -> Self {
        let tier = if platform.listener { Tier::Floor } else { Tier::FloorUnmediated };
        Self {
            confinement: Cow::Borrowed(confinement),
            tier,
            platform,
            own_tmp: false,
            private: Private::find(confinement),
        }
    }

    /// Returns the full tier's view: paths in a `/tmp` that the program does not see do not matter, and
    /// nothing in its own is hidden from it.
    pub(crate) fn full(confinement: &Confinement, platform: Platform, layout: &Layout) -> Self {
        let mut confinement = confinement.in_tier(Tier::Full);
        confinement.rights.hidden.retain(|hidden| layout.shows(hidden.as_path()));
        let own_tmp = layout.tmp.is_some();
        let confinement = Cow::Owned(confinement);
        Self { confinement, tier: Tier::Full, platform, own_tmp, private: Private::default() }
    }

    /// Returns the hidden paths in a `/tmp` of the program's own.
    pub(crate) fn hidden_in_own_tmp(&self) -> impl Iterator<Item = &WirePath> {
        let tmp = WirePath::from(TMP);
        let hidden = self.confinement.rights.hidden.iter().filter(|_| self.own_tmp);
        hidden.filter(move |hidden| hidden.is_within(&tmp))
    }

    pub(super) fn plan(&self, host: &Host) -> Result<Plan, Failure> {
        let Confinement { rights, project, temp, hidden_files, terminal, .. } = &*self.confinement;
        let rights = with_project(rights, project);
        // The place that its temp directory lies in is hidden, because of the others' there.
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

    /// True if the program sees the host's file at `path`.
    pub(super) fn is_the_hosts(&self, path: &Path) -> bool {
        let replaced = |place| path.starts_with(place);
        self.tier != Tier::Full || !(replaced("/dev") || replaced("/proc") || self.own_tmp && replaced(TMP))
    }
}

/// Creates a ruleset without rules, for both sides of a fork.
pub(super) fn begin(ruleset: &Ruleset) -> Result<(Awaiting, Awaited), Failure> {
    let domain = Domain::empty(ruleset.net, ruleset.tier, ruleset.platform).map_err(at(Stage::Rules))?;
    let (word, to) = pipe2(OFlag::O_CLOEXEC).map_err(at(Stage::Start))?;
    let theirs = domain.try_clone().map_err(at(Stage::Start))?;
    Ok((Awaiting { domain, to: to.into() }, Awaited { domain: theirs, word: word.into() }))
}

impl Awaiting {
    /// Returns the domain, for calls that the mediator performs for the program.
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

    /// Adds the rules on the host's files. Returns the open files, which can be closed later.
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

    /// Sends the message to the child.
    pub(super) fn tell(mut self) -> Result<(), Failure> {
        match self.child.to.write_all(&self.word) {
            // The child is gone: its report names the cause.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(at(Stage::Start)),
        }
    }
}

impl Awaited {
    /// Returns the domain, for calls that the mediator performs for the program.
    pub(crate) fn domain(&self) -> Result<Domain, Failure> {
        self.domain.try_clone().map_err(at(Stage::Start))
    }

    /// Waits for the parent, and adds the rules that are left. The returned plan has these rules alone.
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
        let plan = Plan { rules, net: ruleset.net, tier: ruleset.tier, hidden_witness };
        Ok((domain, plan))
    }
}

/// Adds a project in `/dev`, where `/` grants nothing, as a read root of its own: for example one in shared
/// memory.
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
            private: Private::default(),
        };
        let hosts = |seen: Seen<'_>| {
            ["/", "/tmp", "/tmp/x", "/tmpx", "/dev/null", "/proc", "/sys"]
                .map(|path| seen.is_the_hosts(Path::new(path)))
        };
        assert_eq!(hosts(seen(Tier::Floor, false)), [true; 7]);
        assert_eq!(hosts(seen(Tier::Full, false)), [true, true, true, true, false, false, true]);
        assert_eq!(hosts(seen(Tier::Full, true)), [true, false, false, true, false, false, true]);
    }
}
