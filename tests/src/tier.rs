//! The tiers in which tests are repeated.

use std::sync::OnceLock;

use ipc::confinement::{Tier, TierChoice};

use crate::process::Finished;
use crate::programs::User;
use crate::world::World;

/// Combinations of users and tiers.
pub type Places = Vec<(User, Tier)>;

/// Returns the flags that require exactly this tier.
pub fn flags(tier: Tier) -> &'static [&'static str] {
    match tier {
        Tier::Full => &["--tier", "full"],
        Tier::Floor | Tier::FloorUnmediated => &["--tier", "floor"],
    }
}

pub fn choice(tier: Tier) -> TierChoice {
    match tier {
        Tier::Full => TierChoice::Full,
        Tier::Floor | Tier::FloorUnmediated => TierChoice::Floor,
    }
}

/// Returns the tiers that this machine supports, and skips the others with a message. Panics if it supports none,
/// because tests without a sandbox would show nothing.
pub fn all() -> Vec<Tier> {
    static ALL: OnceLock<Vec<Tier>> = OnceLock::new();
    let probe = || {
        let mut all = vec![Tier::Full, Tier::Floor];
        all.retain(|tier| is_possible(*tier));
        assert!(!all.is_empty(), "no tier can be built here");
        all
    };
    ALL.get_or_init(probe).clone()
}

/// Returns the combinations of users and tiers for the case with this index of a large matrix: see [`share_of`].
pub fn share(case: usize) -> Places {
    share_of(everywhere(), case)
}

/// Returns the part of these combinations of users and tiers in which CI plays the case with this index. Each case is
/// played as each user and in each tier, but not as each user in each tier: neighbouring cases have the other
/// combinations. `just soak` plays all.
pub fn share_of(everywhere: Places, case: usize) -> Places {
    let is_of_share = |place: usize| (place + place / 2 + case).is_multiple_of(2);
    if everywhere.len() != 4 || crate::soaks() {
        return everywhere;
    }
    everywhere
        .into_iter()
        .enumerate()
        .filter(|(place, _)| is_of_share(*place))
        .map(|(_, place)| place)
        .collect()
}

/// Returns all combinations of users and supported tiers.
pub fn everywhere() -> Places {
    User::all().into_iter().flat_map(|user| all().into_iter().map(move |tier| (user, tier))).collect()
}

fn is_possible(tier: Tier) -> bool {
    let world = World::new(User::Myself);
    let done = Finished::of(&mut world.sandbox(tier, &[], "true"));
    if done.code != 0 {
        eprintln!("skipped: no {tier} tier: {}", done.stderr.lines().next().unwrap_or_default());
    }
    done.code == 0
}
