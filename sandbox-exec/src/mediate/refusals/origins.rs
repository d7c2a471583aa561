//! Denied calls, grouped by the child of the program from which they come.

use std::collections::VecDeque;

use ipc::refusal::Refusal;
use nix::libc::pid_t;

// Maximum number of remembered children, and of denials of each.
pub(super) const MOST_ORIGINS: usize = 32;
pub(super) const MOST_EACH: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Origins(VecDeque<Origin>);

#[derive(Debug)]
pub(super) struct Origin {
    process: pid_t,
    /// Start time in clock ticks. It tells processes with the same pid apart.
    began: u64,
    pub(super) refused: Vec<Refusal>,
    pub(super) untold: u64,
}

impl Origins {
    /// Returns the entry of a child process; adds a new one. If there are too many, forgets the oldest.
    pub(super) fn of(&mut self, process: pid_t, began: u64) -> &mut Origin {
        let known = self.0.iter().position(|origin| (origin.process, origin.began) == (process, began));
        let at = known.unwrap_or_else(|| {
            if self.0.len() >= MOST_ORIGINS {
                self.0.pop_front();
            }
            self.0.push_back(Origin { process, began, refused: vec![], untold: 0 });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

impl Origin {
    /// Counts a denial, and reports it by `tell` if it is new, or at each power of two of its count.
    pub(super) fn count(&mut self, refusal: Refusal, tell: impl FnOnce(&Refusal) -> bool) {
        let same = |known: &Refusal| (known.act, &known.object) == (refusal.act, &refusal.object);
        if let Some(known) = self.refused.iter_mut().find(|known| same(known)) {
            known.count = known.count.saturating_add(1);
            if known.count.is_power_of_two() {
                tell(&Refusal { untold: self.untold, ..known.clone() });
            }
            return;
        }
        let new = Refusal { untold: self.untold, ..refusal };
        // A denial that was not reported is new the next time too.
        if self.refused.len() < MOST_EACH && tell(&new) {
            self.refused.push(new);
        } else {
            self.untold = self.untold.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_child_of_the_program_is_forgotten_first() {
        let mut origins = Origins::default();
        for process in (0..).take(MOST_ORIGINS + 1) {
            origins.of(process, 1);
        }
        assert_eq!((origins.0.len(), origins.0[0].process), (MOST_ORIGINS, 1));
        assert_eq!(origins.of(1, 2).began, 2, "the number is another's");
    }
}
