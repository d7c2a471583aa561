//! Output of open calls, kept so that the user and the model get it at once if a call is cut off.

use std::collections::{HashMap, VecDeque};

use agent::core::{CallProgress, Input};
use gate::tools::join_ends;
use ipc::id::CallId;
use ipc::message::CallOutcome;
use tokio::time::Instant;

use super::super::millis;

/// Maximum number of bytes of output kept for one command: the size of the longest result.
const MOST: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Progress(HashMap<CallId, Served>);

struct Served {
    began: Instant,
    output: Output,
}

impl Progress {
    /// Records the start of a call, of whose output at most `output_bytes` are kept.
    pub(super) fn begin(&mut self, call: CallId, output_bytes: u64) {
        let half = usize::try_from(output_bytes.min(MOST) / 2).unwrap_or(0);
        let output = Output { half, head: Vec::new(), tail: VecDeque::new(), omitted: 0 };
        self.0.insert(call, Served { began: Instant::now(), output });
    }

    /// Keeps the output of a call. False if the call is over.
    pub(super) fn printed(&mut self, call: CallId, bytes: &[u8]) -> bool {
        let served = self.0.get_mut(&call);
        served.map(|served| served.output.push(bytes)).is_some()
    }

    /// Returns the milliseconds since a call began; 0 if it has not begun.
    pub(super) fn duration_ms(&self, call: CallId) -> u64 {
        self.0.get(&call).map_or(0, |served| millis(served.began.elapsed()))
    }

    pub(super) fn end(&mut self, call: CallId) {
        self.0.remove(&call);
    }

    /// Returns the output of the calls that this input may end. The core needs the output before the input.
    pub(super) fn before(&mut self, input: &Input) -> Vec<(CallId, CallProgress)> {
        match of(input) {
            Concerns::All => self.0.iter().map(|(call, served)| (*call, served.progress())).collect(),
            Concerns::One(call) => {
                self.0.remove(&call).map(|served| (call, served.progress())).into_iter().collect()
            }
            Concerns::Done(call) => {
                self.end(call);
                Vec::new()
            }
            Concerns::None => Vec::new(),
        }
    }
}

enum Concerns {
    All,
    /// The input ends this call with a result that lacks the call's output.
    One(CallId),
    /// The input ends this call with a result that includes the call's output.
    Done(CallId),
    None,
}

fn of(input: &Input) -> Concerns {
    match input {
        Input::CallFinished { call, outcome: CallOutcome::Done(_), .. }
        | Input::OneShotFinished { call, outcome: Ok(CallOutcome::Done(_)), .. }
        | Input::Served { call, .. }
        | Input::AgentFinished { call, .. } => Concerns::Done(*call),
        Input::CallFinished { call, .. }
        | Input::OneShotFinished { call, .. }
        | Input::CallLost { call, .. }
        | Input::Prepared { call, .. }
        | Input::NotPrepared { call, .. } => Concerns::One(*call),
        // Actions of the user and changes of access may end any call.
        Input::Op(_)
        | Input::TimeUp
        | Input::Broken { .. }
        | Input::FrontEndGone
        | Input::Narrowed { .. }
        | Input::WorkerReady(_)
        | Input::NotReplaced { .. } => Concerns::All,
        Input::Model(_)
        | Input::Context(_)
        | Input::Stream { .. }
        | Input::StreamFailed { .. }
        | Input::Progress { .. }
        | Input::Remark { .. }
        | Input::Refused(_)
        | Input::HostAsked(_)
        | Input::FormAsked(_)
        | Input::Located { .. }
        | Input::Lapsed { .. }
        | Input::OutOfBudget { .. }
        | Input::TakenBack(_)
        | Input::Timer(_) => Concerns::None,
    }
}

impl Served {
    fn progress(&self) -> CallProgress {
        CallProgress { output: self.output.text(), duration_ms: millis(self.began.elapsed()) }
    }
}

/// First and last bytes of a command's output. A worker reports the bytes, which may have any content.
struct Output {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        // Bytes that fill the tail alone replace all earlier ones in it.
        let kept = &rest[rest.len().saturating_sub(self.half)..];
        let overflow = (self.tail.len() + kept.len()).saturating_sub(self.half);
        self.tail.drain(..overflow);
        self.tail.extend(kept);
        self.omitted += (overflow + rest.len() - kept.len()) as u64;
    }

    /// Returns the first and last bytes as text. Invalid bytes become U+FFFD; characters that were cut are left out.
    fn text(&self) -> String {
        let (head, tail): (&[u8], Vec<u8>) = (&self.head, self.tail.iter().copied().collect());
        if self.omitted == 0 {
            return String::from_utf8_lossy(&[head, &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(&tail));
        let (head, tail) = (head.trim_end_matches('\u{fffd}'), tail.trim_start_matches('\u{fffd}'));
        join_ends(head, self.omitted, tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(limit: u64, pieces: &[&[u8]]) -> String {
        let mut progress = Progress::default();
        progress.begin(CallId(1), limit);
        assert!(pieces.iter().all(|piece| progress.printed(CallId(1), piece)));
        let mut told = progress.before(&Input::TimeUp);
        assert_eq!(told.len(), 1);
        told.remove(0).1.output
    }

    #[test]
    fn short_output_is_kept_whole_and_long_output_by_both_ends() {
        assert_eq!(printed(8, &[b"abc", b"", b"defgh"]), "abcdefgh");
        assert_eq!(printed(8, &[b"abcde", b"fghijk"]), "abcd\n[3 bytes of output are left out here]\nhijk");
        assert_eq!(
            printed(8, &[b"abcd", b"e", &[b'x'; 50]]),
            "abcd\n[47 bytes of output are left out here]\nxxxx"
        );
        assert_eq!(printed(0, &[b"abc"]), "[3 bytes of output are left out here]\n");
    }

    #[test]
    fn any_bytes_cut_anywhere_are_text() {
        assert_eq!(printed(64, &["ä".as_bytes(), b"\xe2\x82"]), "ä\u{fffd}");
        assert_eq!(printed(64, &[b"\xe2\x82", b"\xac"]), "€");
        for limit in 0..20 {
            let text = printed(limit, &["ä→😀".repeat(9).as_bytes(), b"\xff\xf0\x9f"]);
            assert!(text.contains("left out"), "{limit}: {text}");
        }
    }

    #[test]
    fn late_output_is_nobodys() {
        let mut progress = Progress::default();
        progress.begin(CallId(1), 8);
        progress.end(CallId(1));
        assert!(!progress.printed(CallId(1), b"late") && progress.before(&Input::TimeUp).is_empty());
    }
}
