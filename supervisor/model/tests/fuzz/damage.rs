//! Damages a body at random. The state of the random generator identifies each case, so that a run can repeat it.

use super::corpus::Body;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the state, which as a seed makes a run repeat the following cases.
    pub(crate) const fn state(&self) -> u64 {
        self.0
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).expect("a length");
        usize::try_from(self.next() % bound).expect("below a length")
    }
}

/// Texts that are inserted. Each of them has made some parser fail.
const PIECES: &[&str] = &[
    "\r",
    "\n\n",
    "\u{feff}",
    "data: {",
    "data: [DONE]\n\n",
    "\"",
    "\\",
    "\\ud83e",
    "\\u0000",
    "null",
    "9e999",
    "-1",
    "}",
    "[",
    "{\"type\":",
    "event: error\ndata: {\"type\":\"error\"}\n\n",
    "18446744073709551616",
    ": c\n",
    "data:\n\n",
    "\u{2028}",
    "\"index\":0,",
    "\"type\":\"",
    "true",
    "\u{1b}[2J",
    "data: {\"error\":\"x\"}\n\n",
    "<",
];

pub(crate) struct Damage;

impl Damage {
    pub(crate) fn inflict(body: &[u8], corpus: &[Body], random: &mut Random) -> Vec<u8> {
        let mut body = body.to_vec();
        for _ in 0..=random.below(6) {
            Self::once(&mut body, corpus, random);
        }
        body
    }

    fn once(body: &mut Vec<u8>, corpus: &[Body], random: &mut Random) {
        let at = random.below(body.len() + 1);
        let end = (at + 1 + random.below(300)).min(body.len());
        match random.below(8) {
            0 => Self::flip(body, at, random),
            1 => drop(body.drain(at..end)),
            2 => Self::repeat(body, at..end, 1),
            3 => Self::repeat(body, at..end, random.below(200)),
            4 => drop(body.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
            5 => body.truncate(at),
            6 => Self::lines(body, random),
            _ => {
                let other = &corpus[random.below(corpus.len())].bytes;
                let from = random.below(other.len() + 1);
                let to = (from + random.below(2000)).min(other.len());
                drop(body.splice(at..at, other[from..to].iter().copied()));
            }
        }
    }

    fn flip(body: &mut [u8], at: usize, random: &mut Random) {
        if let Some(hit) = body.get_mut(at) {
            *hit = u8::try_from(random.below(256)).expect("a byte");
        }
    }

    fn repeat(body: &mut Vec<u8>, span: std::ops::Range<usize>, times: usize) {
        let (at, piece) = (span.start, body[span].repeat(times));
        drop(body.splice(at..at, piece));
    }

    fn lines(body: &mut Vec<u8>, random: &mut Random) {
        let mut events: Vec<Vec<u8>> =
            body.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let count = events.len();
        if count > 1 {
            events.swap(random.below(count), random.below(count));
        }
        *body = events.concat();
    }
}
