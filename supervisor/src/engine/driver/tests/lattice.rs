//! Tests in random trees of agents that a sub-agent never has more access than its parent's plus its grant.

use gate::activity::Activity;
use gate::judgement::{change, spawn};
use gate::modes::Position;
use gate::tools::SpawnAgent;
use gate::{ApprovalMode, Modes, SpawnVerdict, StandingRights};
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Reach, Rights, RightsChange};

use super::stage::Dice;

const TREES: u64 = 10_000;

/// Paths in the project (some of them protected), outside it, in the caches, and in the first agent's temp directory.
const PLACES: [&str; 12] = [
    "/p",
    "/p/a",
    "/p/a/b",
    "/p/c",
    "/p/key",
    "/p/.git/hooks",
    "/p/.git",
    "/w",
    "/w/x",
    "/c",
    "/c/go",
    "/t/0",
];

const SOCKETS: [&str; 2] = ["/run/a", "/run/b"];

struct Member {
    standing: StandingRights,
    parent: Option<usize>,
    level: usize,
    grant: Grant,
    lives: bool,
}

struct Waiting {
    parent: usize,
    rights: Rights,
    grant: Grant,
}

struct Tree {
    dice: Dice,
    members: Vec<Member>,
    waiting: Vec<Waiting>,
}

enum Action {
    Change(RightsChange),
    Mode(ApprovalMode),
}

impl Tree {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let always: Vec<_> =
            ["/w", "/w/x"].into_iter().filter(|_| dice.below(2) == 0).map(Into::into).collect();
        let auto: Vec<WirePath> = vec!["/p".into(), "/c".into()];
        let mode = any_mode(&mut dice);
        let write = always.iter().chain(auto.iter().filter(|_| mode == ApprovalMode::Auto)).cloned();
        let rights = Rights {
            read: vec!["/".into()],
            hidden: vec!["/p/key".into(), "/home/.ssh".into()],
            write: write.chain(["/t/0".into()]).collect(),
            protected: vec!["/p/.git/hooks".into()],
            net: any_network(&mut dice),
            reach: any_reach(&mut dice),
            sockets: SOCKETS.into_iter().filter(|_| dice.below(2) == 0).map(Into::into).collect(),
            ..Rights::default()
        };
        let standing = StandingRights::new(rights.normalised(), "/p".into(), Some("/t/0".into()), mode);
        let (caches, reach, modes) = (Some("/c".into()), any_reach(&mut dice), Some(Modes { auto, always }));
        let standing = standing.with_caches(caches).with_reach(reach).with_modes(modes);
        let first = Member { standing, parent: None, level: 0, grant: Grant::default(), lives: true };
        Self { dice, members: vec![first], waiting: vec![] }
    }

    fn living(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|at| self.members[*at].lives).collect()
    }

    fn step(&mut self) {
        match self.dice.below(10) {
            0..5 => self.spawn(),
            5 if !self.waiting.is_empty() => {
                let waiting = self.waiting.swap_remove(0);
                self.start(waiting);
            }
            5..9 => self.act(),
            _ => self.end(),
        }
    }

    fn spawn(&mut self) {
        let living = self.living();
        // The youngest agent in half of the cases, so that trees get deep.
        let parent =
            living[if self.dice.below(2) == 0 { living.len() - 1 } else { self.dice.at(living.len()) }];
        let write: Vec<_> =
            (0..self.dice.below(3)).map(|_| PLACES[self.dice.at(PLACES.len())].into()).collect();
        let spawn = SpawnAgent {
            task: "t".to_owned(),
            role: None,
            servers: Vec::new(),
            writes: !write.is_empty() || self.dice.below(2) == 0,
            write,
            network: self.dice.below(2) == 0,
            model: None,
            max_steps: None,
        };
        let Member { standing, level, .. } = &self.members[parent];
        let position = if *level == 0 { Position::FIRST } else { Position::SUB };
        let (child, grant) = match spawn::judge(standing, &spawn, position) {
            SpawnVerdict::Run(child) => (child, Grant::default()),
            SpawnVerdict::Ask(child, ask) if self.dice.below(2) == 0 => (child, ask.grant),
            SpawnVerdict::Ask(..) | SpawnVerdict::Deny(_) | SpawnVerdict::Misfit(_) => return,
        };
        assert_eq!(child.grant, grant, "what is approved is what the parent lacks");
        let same = spawn.write.is_empty() && spawn.network == (standing.rights().net == Network::On);
        assert!(same || !child.rights.allows_write(&"/c/go".into()), "the lasting caches: {spawn:?}");
        let waiting = Waiting { parent, rights: child.rights, grant };
        if *level < 3 && self.dice.below(3) > 0 { self.start(waiting) } else { self.waiting.push(waiting) }
    }

    /// Starts a sub-agent that waited. Its parent may have lost access while the sub-agent waited.
    fn start(&mut self, waiting: Waiting) {
        let Waiting { parent, rights, grant } = waiting;
        let Member { standing: above, level, lives, .. } = &self.members[parent];
        if !lives || *level >= 3 {
            return;
        }
        let temp = WirePath::from(format!("/t/{}", self.members.len()).as_str());
        let mut rights = spawn::at_start(&rights, above, &grant);
        rights.write.push(temp.clone());
        let standing = above.of_sub_agent(rights.normalised(), temp);
        self.members.push(Member { standing, parent: Some(parent), level: level + 1, grant, lives: true });
    }

    fn act(&mut self) {
        let action = match self.dice.below(6) {
            0 => Action::Mode(any_mode(&mut self.dice)),
            // Nobody can name the last three paths: caches and temp directories.
            1 => Action::Change(RightsChange::AddWrite { path: PLACES[self.dice.at(9)].into() }),
            2 => {
                Action::Change(RightsChange::RemoveWrite { path: PLACES[self.dice.at(PLACES.len())].into() })
            }
            3 => Action::Change(RightsChange::AddSocket { path: SOCKETS[self.dice.at(2)].into() }),
            4 => Action::Change(RightsChange::RemoveSocket { path: SOCKETS[self.dice.at(2)].into() }),
            _ => Action::Change(RightsChange::Network { net: any_network(&mut self.dice), reach: None }),
        };
        let first = &mut self.members[0].standing;
        let changed = match &action {
            Action::Change(change) => change::rights_after(first, change, Activity::Execute),
            Action::Mode(mode) => change::to_mode(first, *mode, Activity::Execute),
        };
        if let (Ok(_), Action::Mode(mode)) = (&changed, &action) {
            first.set_mode(*mode);
        }
        if let Ok(rights) = changed {
            first.set_rights(rights);
        }
        self.withdraw(&action);
        self.narrow_all();
    }

    fn withdraw(&mut self, action: &Action) {
        let grants = self.members.iter_mut().map(|member| &mut member.grant);
        for grant in grants.chain(self.waiting.iter_mut().map(|waiting| &mut waiting.grant)) {
            match action {
                Action::Change(RightsChange::Network {
                    net: bound @ (Network::Off | Network::Hosts(_)),
                    ..
                }) => {
                    *grant = spawn::narrowed_grant(grant, bound, None);
                }
                Action::Change(RightsChange::RemoveWrite { path }) => {
                    *grant = spawn::narrowed_grant(grant, &Network::On, Some(path));
                }
                Action::Mode(ApprovalMode::Deny) => *grant = Grant::default(),
                Action::Change(_) | Action::Mode(_) => {}
            }
        }
    }

    fn narrow_all(&mut self) {
        for at in 1..self.members.len() {
            let Some(parent) = self.members[at].parent else { continue };
            let above = self.members[parent].standing.rights().clone();
            let member = &mut self.members[at];
            let rights = spawn::narrowed(&member.standing, &above, &member.grant);
            assert!(member.standing.rights().covers(&rights), "no sub-agent is widened");
            member.standing.set_rights(rights);
        }
    }

    fn end(&mut self) {
        let at = self.dice.at(self.members.len());
        if at > 0 {
            self.members[at].lives = false;
        }
        for below in 1..self.members.len() {
            let parent = self.members[below].parent;
            let orphaned = parent.is_some_and(|parent| !self.members[parent].lives);
            self.members[below].lives &= !orphaned;
        }
    }

    /// Fails unless each living sub-agent has at most its parent's access plus its grant.
    fn check(&self, seed: u64) {
        for member in self.members.iter().filter(|member| member.lives) {
            let Some(parent) = member.parent.map(|parent| &self.members[parent]) else { continue };
            let (rights, above) = (member.standing.rights(), parent.standing.rights());
            let temp = member.standing.temp().unwrap();
            let own = rights.write.iter().filter(|root| *root != temp).cloned().collect();
            let own = Rights { write: own, ..rights.clone() };
            let most = above.with_grant(&member.grant);
            assert!(most.covers(&own), "seed {seed}: {own:?} beyond {above:?} and {:?}", member.grant);
            assert!(rights.allows_write(temp), "seed {seed}: its temp");
            let closed = ["/p/key", "/p/key/x", "/p/.git/hooks", "/p/.git/hooks/x"].map(WirePath::from);
            assert!(!closed.iter().any(|place| rights.allows_write(place)), "seed {seed}: {rights:?}");
            let temps = self.members.iter().filter_map(|other| other.standing.temp());
            assert_eq!(
                temps.filter(|other| rights.allows_write(other)).count(),
                1,
                "seed {seed}: another's temp"
            );
            Self::check_caches(seed, member, parent);
        }
    }

    /// Fails if a sub-agent has the shared caches but its parent does not, or has a network that its parent lacks.
    fn check_caches(seed: u64, member: &Member, parent: &Member) {
        let of = |member: &Member| {
            let rights = member.standing.rights();
            (rights.allows_write(&"/c".into()) && rights.allows_write(&"/p".into())).then_some(())
        };
        if of(member).is_none() {
            // Then it neither executes files in the caches nor writes there.
            let (own, above) = (member.standing.rights(), parent.standing.rights());
            assert!(
                !own.allows_write(&"/c/go".into()),
                "seed {seed}: {own:?} below {above:?}, {:?}",
                member.grant
            );
            return;
        }
        let (rights, above) = (member.standing.rights(), parent.standing.rights());
        assert!(
            of(parent).is_some() && above.net.covers(&rights.net),
            "seed {seed}: {rights:?} below {above:?}"
        );
    }
}

fn any_mode(dice: &mut Dice) -> ApprovalMode {
    [ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Deny][dice.at(3)]
}

fn any_network(dice: &mut Dice) -> Network {
    if dice.below(2) == 0 { Network::Off } else { Network::On }
}

fn any_reach(dice: &mut Dice) -> Reach {
    Reach { host: dice.below(2) == 0, lan: dice.below(2) == 0, ..Reach::default() }
}

#[test]
fn no_sub_agent_ever_has_more_than_its_parent() {
    let (mut deep, mut granted, mut cached) = (0, 0, 0);
    for seed in 0..TREES {
        let mut tree = Tree::new(seed);
        for _ in 0..24 {
            tree.step();
            tree.check(seed);
        }
        deep += usize::from(tree.members.iter().any(|member| member.level == 3));
        granted += tree.members.iter().filter(|member| !member.grant.is_empty()).count();
        let has_caches = |member: &&Member| member.level > 0 && member.standing.allows_write(&"/c/go".into());
        cached += tree.members.iter().filter(has_caches).count();
    }
    assert!(deep > 500 && granted > 1_000 && cached > 500, "{deep} deep, {granted} granted, {cached} cached");
}
