//! From single records to acts: records of one event are put together, and only what domains of our programs refused is kept.
//!
//! The kernel tells who made a domain with the first refusal of it, and of each call that was refused who made it, and that it
//! failed. Without the latter nothing is told: Landlock is also asked for calls that go another way and succeed.

use std::collections::VecDeque;
use std::path::PathBuf;

use ipc::path::WirePath;
use ipc::recorded::{Recorded, RecordedAct};
use libc::{EACCES, EXDEV};

use super::line::{Line, Said, Stamp};

/// The most events that are incomplete at a time, domains that are known, and acts that are kept: what is older goes.
const MOST_EVENTS: usize = 64;
const MOST_DOMAINS: usize = 256;
const MOST_ACTS: usize = 512;

/// Whose acts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All beneath a confined program, by its process id.
    Program(u32),
    /// Those of one command of a confined program.
    Command {
        /// The program.
        program: u32,
        /// The command, which is in a domain of its own.
        command: u32,
        /// When it began, or somewhat earlier, in milliseconds since 1970: nobody else has had its number since.
        since: u64,
    },
}

/// What records of one machine come to.
#[derive(Debug)]
pub(super) struct Trail {
    /// The programs that make the domains that matter.
    programs: Vec<PathBuf>,
    events: VecDeque<Event>,
    domains: VecDeque<(u64, u32)>,
    acts: VecDeque<Act>,
}

/// What was refused by a call that has not ended.
#[derive(Debug)]
struct Event {
    stamp: Stamp,
    refused: (u64, RecordedAct, WirePath),
}

/// What was refused, whom, and by a domain of whose making.
#[derive(Debug)]
struct Act {
    millis: u64,
    maker: u32,
    process: u32,
    parent: u32,
    recorded: Recorded,
}

impl Trail {
    pub(super) fn new(programs: Vec<PathBuf>) -> Self {
        Self { programs, events: VecDeque::new(), domains: VecDeque::new(), acts: VecDeque::new() }
    }

    /// Takes the next record.
    pub(super) fn feed(&mut self, kind: u16, bytes: &[u8]) {
        let Some(Line { stamp, said }) = Line::parse(kind, bytes) else { return };
        match said {
            Said::Refused { domain, act, path } => {
                push(&mut self.events, MOST_EVENTS, Event { stamp, refused: (domain, act, path) });
            }
            Said::Made { domain, process, program } if self.programs.contains(&program) => {
                push(&mut self.domains, MOST_DOMAINS, (domain, process));
            }
            Said::Made { .. } => {}
            Said::Failed { errno, process, parent, name, program } => {
                // Our programs try what they know to be forbidden, and tell of their errors themselves.
                let is_own = self.programs.contains(&program);
                for (domain, act, path) in self.refused_in(stamp) {
                    let recorded = Recorded { program: name.clone(), act, path, errno };
                    if let Some(maker) = self.maker(domain).filter(|_| !is_own && is_of_landlock(act, errno))
                    {
                        let act = Act { millis: stamp.millis, maker, process, parent, recorded };
                        push(&mut self.acts, MOST_ACTS, act);
                    }
                }
            }
        }
    }

    /// Takes out what was refused them, each once.
    pub(super) fn take(&mut self, whose: Whose) -> Vec<Recorded> {
        let (theirs, others): (VecDeque<_>, _) =
            std::mem::take(&mut self.acts).into_iter().partition(|act| act.is_of(whose));
        self.acts = others;
        let mut found: Vec<Recorded> = Vec::new();
        for Act { recorded, .. } in theirs {
            if !found.contains(&recorded) {
                found.push(recorded);
            }
        }
        found
    }

    /// What a call was refused, which has ended.
    fn refused_in(&mut self, stamp: Stamp) -> Vec<(u64, RecordedAct, WirePath)> {
        let (of_it, others): (VecDeque<_>, _) =
            std::mem::take(&mut self.events).into_iter().partition(|event| event.stamp == stamp);
        self.events = others;
        of_it.into_iter().map(|event| event.refused).collect()
    }

    fn maker(&self, domain: u64) -> Option<u32> {
        self.domains.iter().rev().find(|(known, _)| *known == domain).map(|(_, maker)| *maker)
    }
}

impl Act {
    fn is_of(&self, whose: Whose) -> bool {
        match whose {
            Whose::Program(program) => self.maker == program,
            Whose::Command { program, command, since } => {
                let has_called = [self.process, self.parent].contains(&command);
                self.millis >= since && (self.maker == command || self.maker == program && has_called)
            }
        }
    }
}

/// Whether this is how Landlock answers: another error is another layer's, which came after it in the same call.
fn is_of_landlock(act: RecordedAct, errno: i32) -> bool {
    errno == EACCES || errno == EXDEV && act == RecordedAct::Name
}

fn push<T>(queue: &mut VecDeque<T>, most: usize, next: T) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(next);
}

#[cfg(test)]
mod tests {
    use super::super::line::{ACCESS, DOMAIN, SYSCALL};
    use super::*;

    const WORKER: &str = "/opt/bailiwick-worker";
    const PROGRAM: u32 = 100;
    const COMMAND: u32 = 120;

    fn trail() -> Trail {
        Trail::new(vec![WORKER.into(), "/opt/sandbox-exec".into()])
    }

    fn feed(trail: &mut Trail, kind: u16, serial: u64, rest: &str) {
        trail.feed(kind, format!("audit(5.000:{serial}): {rest}").as_bytes());
    }

    fn refuse(trail: &mut Trail, serial: u64, domain: u32, path: &str) {
        let rest = format!("domain={domain:x} blockers=fs.write_file path=\"{path}\" dev=\"vda\" ino=1");
        feed(trail, ACCESS, serial, &rest);
    }

    fn make(trail: &mut Trail, serial: u64, domain: u32, process: u32, program: &str) {
        let rest = format!(
            "domain={domain:x} status=allocated mode=enforcing pid={process} uid=0 exe=\"{program}\" comm=\"x\""
        );
        feed(trail, DOMAIN, serial, &rest);
    }

    fn fail(trail: &mut Trail, serial: u64, process: u32, parent: u32) {
        fail_in("/bin/touch", trail, serial, (process, parent));
    }

    fn fail_in(program: &str, trail: &mut Trail, serial: u64, (process, parent): (u32, u32)) {
        let rest =
            format!("success=no exit=-13 ppid={parent} pid={process} comm=\"touch\" exe=\"{program}\"");
        feed(trail, SYSCALL, serial, &rest);
    }

    fn paths(recorded: &[Recorded]) -> Vec<String> {
        recorded.iter().map(|recorded| recorded.path.to_string()).collect()
    }

    const OF_COMMAND: Whose = Whose::Command { program: PROGRAM, command: COMMAND, since: 4000 };

    #[test]
    fn an_event_is_told_with_its_program_once() {
        let mut trail = trail();
        for serial in [1, 2] {
            refuse(&mut trail, serial, 7, "/srv/a");
            make(&mut trail, serial, 7, COMMAND, WORKER);
            fail(&mut trail, serial, 130, COMMAND);
        }
        let path = "/srv/a".into();
        let act = RecordedAct::Write;
        assert_eq!(trail.take(OF_COMMAND), [Recorded { program: "touch".into(), act, path, errno: EACCES }]);
        assert_eq!(trail.take(OF_COMMAND), []);
    }

    #[test]
    fn events_that_come_among_each_other_stay_apart() {
        let mut trail = trail();
        refuse(&mut trail, 1, 7, "/srv/a");
        refuse(&mut trail, 2, 8, "/srv/b");
        make(&mut trail, 2, 8, PROGRAM, "/opt/sandbox-exec");
        make(&mut trail, 1, 7, COMMAND, WORKER);
        fail(&mut trail, 2, PROGRAM, 1);
        fail(&mut trail, 1, COMMAND, 119);
        assert_eq!(paths(&trail.take(OF_COMMAND)), ["/srv/a"]);
        assert_eq!(paths(&trail.take(Whose::Program(PROGRAM))), ["/srv/b"]);
    }

    #[test]
    fn a_domain_that_another_program_made_is_never_ours() {
        let mut trail = trail();
        refuse(&mut trail, 1, 7, "/srv/a");
        make(&mut trail, 1, 7, COMMAND, "/usr/bin/firefox");
        fail(&mut trail, 1, COMMAND, PROGRAM);
        // One whose maker was never told, and one of another session's worker.
        refuse(&mut trail, 2, 9, "/srv/b");
        fail(&mut trail, 2, COMMAND, PROGRAM);
        refuse(&mut trail, 3, 10, "/srv/c");
        make(&mut trail, 3, 10, 555, WORKER);
        fail(&mut trail, 3, 556, 555);
        assert_eq!(trail.take(OF_COMMAND), []);
        assert_eq!(trail.take(Whose::Program(PROGRAM)), []);
    }

    #[test]
    fn who_had_the_number_before_is_somebody_else() {
        let mut trail = trail();
        refuse(&mut trail, 1, 7, "/srv/a");
        make(&mut trail, 1, 7, COMMAND, WORKER);
        fail(&mut trail, 1, COMMAND, 119);
        let later = Whose::Command { program: PROGRAM, command: COMMAND, since: 5001 };
        assert_eq!(trail.take(later), []);
    }

    #[test]
    fn what_the_worker_is_refused_itself_is_no_commands() {
        let mut trail = trail();
        refuse(&mut trail, 1, 7, "/srv/a");
        make(&mut trail, 1, 7, PROGRAM, "/opt/sandbox-exec");
        fail(&mut trail, 1, PROGRAM, 1);
        refuse(&mut trail, 2, 7, "/home/me/.ssh/key");
        fail(&mut trail, 2, 130, COMMAND);
        assert_eq!(paths(&trail.take(OF_COMMAND)), ["/home/me/.ssh/key"]);
    }

    #[test]
    fn what_our_programs_try_themselves_is_not_told() {
        let mut trail = trail();
        make(&mut trail, 1, 7, PROGRAM, "/opt/sandbox-exec");
        for (serial, program) in [(1, "/opt/sandbox-exec"), (2, WORKER), (3, "/bin/cat")] {
            refuse(&mut trail, serial, 7, program);
            fail_in(program, &mut trail, serial, (PROGRAM, 1));
        }
        assert_eq!(paths(&trail.take(Whose::Program(PROGRAM))), ["/bin/cat"]);
    }

    #[test]
    fn a_call_that_did_not_fail_by_landlock_is_none() {
        let mut trail = trail();
        make(&mut trail, 1, 7, COMMAND, WORKER);
        for (serial, end) in
            [(1, "success=yes exit=3"), (2, "success=no exit=-2"), (3, "success=no exit=-18")]
        {
            refuse(&mut trail, serial, 7, "/srv/a");
            let rest = format!("{end} ppid={COMMAND} pid=130 comm=\"x\" exe=\"/x\"");
            feed(&mut trail, SYSCALL, serial, &rest);
        }
        assert_eq!(trail.take(OF_COMMAND), []);
    }

    #[test]
    fn a_flood_keeps_what_came_last() {
        let mut trail = trail();
        make(&mut trail, 1, 7, COMMAND, WORKER);
        for serial in 1..2000 {
            // Every other event is never completed.
            refuse(&mut trail, 2 * serial, 7, &format!("/srv/{serial}"));
            refuse(&mut trail, 2 * serial + 1, 7, "/srv/never");
            fail(&mut trail, 2 * serial, COMMAND, 119);
        }
        assert!(trail.events.len() <= MOST_EVENTS && trail.acts.len() <= MOST_ACTS);
        let taken = paths(&trail.take(OF_COMMAND));
        assert_eq!((taken.len(), taken.last().map(String::as_str)), (MOST_ACTS, Some("/srv/1999")));
    }
}
