//! Detects a model that repeats itself. First the model is told. If the repetition goes on, the run ends.
//!
//! A step is the calls of a reply with their results. The same calls with other results are a different step.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::core::call::{CallResult, ToolUse};

/// Maximum length of a sequence of steps whose repetition is detected.
const LONGEST: usize = 3;

/// Number of repetitions after which the model is told.
const TOLD_AFTER: usize = 10;

/// Number of repetitions after which the run ends.
const ENDS_AFTER: usize = 20;

/// Maximum number of characters of a call in a message.
const SHOWN: usize = 120;

#[derive(Debug, Default)]
pub(super) struct Steps {
    past: VecDeque<u64>,
    present: DefaultHasher,
    call: String,
    /// True if the model was told that it repeats itself, and has done nothing else since.
    told: bool,
}

/// Consequence of repeated steps: none, a message to the model, or the end of the run.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::core) enum Course {
    GoesOn,
    Told(String),
    Ends(String),
}

impl Steps {
    /// Begins a step with these calls. The `bool` is true if the tool exists; arguments of unknown tools are ignored.
    pub(super) fn begin<'a>(&mut self, calls: impl Iterator<Item = (&'a ToolUse, bool)>) {
        self.present = DefaultHasher::new();
        self.call.clear();
        for (call, is_known) in calls {
            let input = call.input.as_ref().unwrap_or_else(|reason| reason);
            if self.call.is_empty() {
                let line = format!("{} {input}", call.name);
                self.call = line.chars().take(SHOWN).collect();
            }
            call.name.hash(&mut self.present);
            if is_known {
                input.hash(&mut self.present);
            }
        }
    }

    pub(super) fn add(&mut self, result: &CallResult) {
        format!("{:?} {:?}", result.status, result.exit).hash(&mut self.present);
        without_time(&result.content).hash(&mut self.present);
        result.images.iter().for_each(|image| image.to_string().hash(&mut self.present));
    }

    pub(super) fn end(&mut self) -> Course {
        self.past.push_back(self.present.finish());
        if self.past.len() > LONGEST * ENDS_AFTER {
            self.past.pop_front();
        }
        let rounds = (1..=LONGEST).map(|length| (length, self.rounds(length)));
        let (length, times) =
            rounds.max_by_key(|(length, times)| (*times, LONGEST - length)).unwrap_or((1, 1));
        let told = std::mem::replace(&mut self.told, times >= TOLD_AFTER);
        match times {
            ENDS_AFTER.. => Course::Ends(self.sentence(length, times)),
            TOLD_AFTER.. if !told => Course::Told(format!(
                "{} Do something else, or end your turn and say what is in the way.",
                told_to_the_model(length, times)
            )),
            _ => Course::GoesOn,
        }
    }

    /// Returns how many times in a row the last `length` steps have occurred.
    fn rounds(&self, length: usize) -> usize {
        let last: Vec<_> = self.past.iter().rev().take(length).collect();
        let steps: Vec<_> = self.past.iter().rev().collect();
        steps.chunks_exact(length).take_while(|round| **round == *last).count()
    }

    fn sentence(&self, length: usize, times: usize) -> String {
        let call = &self.call;
        match length {
            1 => format!(
                "the model made the same call {times} times in a row, each with the same result: {call}"
            ),
            _ => format!(
                "the model repeated the same {length} steps {times} times in a row; the last step was {call}"
            ),
        }
    }
}

fn told_to_the_model(length: usize, times: usize) -> String {
    match length {
        1 => format!("You made the same call {times} times in a row, each time with the same result."),
        _ => {
            format!("You went through the same {length} steps {times} times in a row, with the same results.")
        }
    }
}

/// Returns the result without the duration of its command.
fn without_time(content: &str) -> String {
    let is_end = |line: &str| ["[exit code ", "[ended "].iter().any(|start| line.starts_with(start));
    let line = |line: &str| {
        if is_end(line) {
            line.replace(|c: char| c.is_ascii_digit() || c == '.', "")
        } else {
            line.to_owned()
        }
    };
    content.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn courses(steps: impl IntoIterator<Item = u64>) -> Vec<Course> {
        let mut past = Steps::default();
        let course = |step: u64| {
            past.begin(std::iter::empty());
            step.hash(&mut past.present);
            past.end()
        };
        steps.into_iter().map(course).collect()
    }

    fn at(courses: &[Course], is: fn(&Course) -> bool) -> Vec<usize> {
        courses.iter().enumerate().filter(|(_, course)| is(course)).map(|(at, _)| at + 1).collect()
    }

    fn told(courses: &[Course]) -> Vec<usize> {
        at(courses, |course| matches!(course, Course::Told(_)))
    }

    fn first_end(courses: &[Course]) -> Option<usize> {
        at(courses, |course| matches!(course, Course::Ends(_))).first().copied()
    }

    #[test]
    fn the_same_steps_are_told_once_and_then_end() {
        for (length, round) in [(1, vec![7]), (2, vec![7, 8]), (3, vec![7, 8, 9]), (3, vec![7, 7, 9])] {
            let courses = courses(round.iter().copied().cycle().take(70));
            assert_eq!(told(&courses), [length * TOLD_AFTER], "{round:?}");
            assert_eq!(first_end(&courses), Some(length * ENDS_AFTER), "{round:?}");
        }
    }

    #[test]
    fn other_steps_are_no_loop() {
        let changing = courses(0..500);
        let mended = courses((0..15).map(|_| 1).chain([2]).chain((0..15).map(|_| 1)));
        let rounds_of_four = courses([1, 2, 3, 4].into_iter().cycle().take(400));
        for courses in [&changing, &mended, &rounds_of_four] {
            assert_eq!(first_end(courses), None);
        }
        assert_eq!((told(&changing), told(&mended)), (vec![], vec![10, 26]));
    }

    #[test]
    fn the_time_of_a_command_makes_no_other_result() {
        let content = |time: &str| without_time(&format!("a 1.5\n[exit code 0, {time} s]"));
        assert_eq!(content("0.1"), content("12.0"));
        assert_ne!(without_time("a 1"), without_time("a 2"));
    }
}
