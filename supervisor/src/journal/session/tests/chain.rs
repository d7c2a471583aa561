//! Tests that every undamaged event of a damaged log is read, and that every fault is named.

use ipc::id::{AgentId, EventId};
use ipc::image::Image;
use proptest::prelude::*;
use protocol::event::{EventKind, ObservedBy, SessionEvent};

use super::{Scratch, said};
use crate::journal::session::chain::Link;
use crate::journal::session::{Fault, Loaded, Reopened, SessionLog, rebuild};

fn log() -> Vec<u8> {
    let mut scratch = Scratch::new();
    for text in ["a", "b", "c", "d", "e", "f"] {
        scratch.append("1", said(text));
    }
    scratch.bytes()
}

fn lines(log: &[u8]) -> Vec<Vec<u8>> {
    log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn ids(loaded: &Loaded) -> Vec<u64> {
    loaded.tree.events().map(|event| event.id.0).collect()
}

#[test]
fn whole_log_has_no_fault() {
    let loaded = rebuild(&log());
    assert_eq!((ids(&loaded), loaded.faults.as_slice()), (vec![1, 2, 3, 4, 5, 6], &[][..]));
    assert!(loaded.is_intact());
}

#[test]
fn a_long_log_that_several_threads_read_is_judged_as_a_whole() {
    let mut scratch = Scratch::new();
    let last = 20_000;
    for number in 1..=last {
        scratch.append("1", said(&number.to_string()));
    }
    let log = scratch.bytes();
    let loaded = rebuild(&log);
    assert_eq!((loaded.faults.as_slice(), ids(&loaded)), (&[][..], (1..=last).collect()));
    let mut lines = lines(&log);
    // Missing lines are also found where the shares of two threads meet.
    let gone: Vec<usize> = (0..19).map(|part| (part + 1) * 1000).collect();
    for line in gone.iter().rev() {
        lines.remove(*line);
    }
    let chain = gone.iter().enumerate().map(|(before, line)| Fault::Chain { line: line + 1 - before });
    let faults = rebuild(&lines.concat()).faults;
    let broken: Vec<_> = faults.into_iter().filter(|fault| matches!(fault, Fault::Chain { .. })).collect();
    assert_eq!(broken, chain.collect::<Vec<_>>());
}

#[test]
fn first_line_carries_zeros_and_the_next_its_digest() {
    let log = log();
    let text = String::from_utf8(log).unwrap();
    let mut lines = text.lines();
    let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(first.contains(&format!(r#","prev":"{}","sum":""#, "0".repeat(64))), "{first}");
    let hex = String::from_utf8(Link::of(first.as_bytes()).hex().to_vec()).unwrap();
    assert!(second.contains(&format!(r#","prev":"{hex}","sum":""#)), "{second}");
    let signed = first.rsplit_once(r#"","sum":""#).unwrap().0;
    let own = String::from_utf8(Link::of(signed.as_bytes()).hex().to_vec()).unwrap();
    assert!(first.ends_with(&format!(r#""{}"}}"#, &own[..16])), "{first}");
}

/// Returns a line as an earlier version wrote it.
fn without_own(line: &str, before: Option<&str>) -> String {
    let prev = before.map_or_else(
        || "0".repeat(64),
        |line| String::from_utf8(Link::of(line.as_bytes()).hex().to_vec()).unwrap(),
    );
    format!(r#"{},"prev":"{prev}"}}"#, line.rsplit_once(r#","prev""#).unwrap().0)
}

#[test]
fn a_log_of_an_earlier_version_goes_on_and_a_digest_that_is_lost_later_is_missed() {
    let text = String::from_utf8(log()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let first = without_own(lines[0], None);
    let second = without_own(lines[1], Some(&first));
    assert_eq!(rebuild(format!("{first}\n{second}\n").as_bytes()).faults, []);
    let lost = without_own(lines[1], Some(lines[0]));
    assert_eq!(rebuild(format!("{}\n{lost}\n", lines[0]).as_bytes()).faults, [Fault::Changed { line: 2 }]);
}

const fn line_of(fault: &Fault) -> Option<usize> {
    match fault {
        Fault::Torn { line }
        | Fault::Unreadable { line, .. }
        | Fault::UnknownType { line, .. }
        | Fault::Chain { line }
        | Fault::Changed { line }
        | Fault::Long { line, .. } => Some(*line),
        Fault::More { .. }
        | Fault::Session { .. }
        | Fault::Duplicate { .. }
        | Fault::Order { .. }
        | Fault::Orphan { .. } => None,
    }
}

/// Flips a bit of a log, and flips it back. Panics unless a fault names the damaged line.
fn flipped(log: &mut [u8], byte: usize, bit: u8) {
    let line = log[..byte].split(|byte| *byte == b'\n').count();
    log[byte] ^= 1 << bit;
    let faults = rebuild(log).faults;
    log[byte] ^= 1 << bit;
    assert!(
        faults.iter().any(|fault| line_of(fault) == Some(line)),
        "bit {bit} of byte {byte}, line {line}: {faults:?}"
    );
}

#[test]
fn a_flip_at_any_byte_is_found_and_its_line_named() {
    let mut scratch = Scratch::new();
    let lines: u64 = std::env::var("BAILIWICK_FLIPS").map_or(8, |lines| lines.parse().unwrap());
    (1..=lines).for_each(|number| drop(scratch.append("1", said(&format!("said {number} \u{e9}")))));
    let mut log = scratch.bytes();
    for byte in 0..log.len() {
        flipped(&mut log, byte, u8::try_from(byte % 8).unwrap());
    }
}

#[test]
fn random_flips_of_a_long_log_are_found_and_their_lines_named() {
    let (lines, flips) = match std::env::var("BAILIWICK_FLIPS") {
        Ok(_) => (1000, 10_000),
        Err(_) => (60, 100),
    };
    let mut scratch = Scratch::new();
    (1..=lines).for_each(|number| drop(scratch.append("1", said(&format!("said {number} \u{e9}")))));
    let mut log = scratch.bytes();
    let mut random = uuid::Uuid::new_v4().as_u64_pair().0 | 1;
    for _ in 0..flips {
        // The shifts of Marsaglia's xorshift generator.
        for shift in [13, -7, 17_i32] {
            random ^= if shift > 0 { random << shift } else { random >> -shift };
        }
        let byte = usize::try_from(random >> 8).unwrap() % log.len();
        flipped(&mut log, byte, (random % 8) as u8);
    }
}

#[test]
fn a_log_that_was_cut_anywhere_goes_on_from_its_last_whole_line() {
    let whole = log();
    let scratch = Scratch::new();
    let path = scratch.log.path().with_file_name("s-2.jsonl");
    for length in 0..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let lines = memchr::memchr_iter(b'\n', &whole[..length]).count();
        match SessionLog::reopen(&path, &mut |_, _| ()) {
            Ok(Reopened { mut log, needed, torn }) => {
                assert_eq!(
                    (needed.events.len(), torn),
                    (lines, !whole[..length].ends_with(b"\n")),
                    "{length}"
                );
                log.append(&AgentId::root(), ObservedBy::Supervisor, said("and on")).unwrap();
                let loaded = rebuild(&std::fs::read(&path).unwrap());
                assert_eq!(loaded.faults, [], "{length}");
                assert_eq!(loaded.tree.events().count(), lines + 1, "{length}");
            }
            Err(error) => assert!(lines == 0 && error.to_string().contains("line 1"), "{length}: {error}"),
        }
    }
}

#[test]
fn links_are_sha256() {
    // FIPS 180-2, appendix B.1.
    let hex = String::from_utf8(Link::of(b"abc").hex().to_vec()).unwrap();
    assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[test]
fn torn_last_line_is_named_and_no_breach() {
    let log = log();
    for cut in 1..40 {
        let loaded = rebuild(&log[..log.len() - cut]);
        assert_eq!(loaded.faults, [Fault::Torn { line: 6 }]);
        assert_eq!(ids(&loaded), [1, 2, 3, 4, 5]);
        assert!(loaded.is_intact());
    }
}

#[test]
fn changed_line_breaks_the_chain_after_it() {
    let log = String::from_utf8(log()).unwrap().replace(r#""text":"c""#, r#""text":"C""#);
    let loaded = rebuild(log.as_bytes());
    assert_eq!(loaded.faults, [Fault::Changed { line: 3 }, Fault::Chain { line: 4 }]);
    assert!(!loaded.is_intact());
}

#[test]
fn line_with_a_false_picture_is_unreadable() {
    let whole = picture::read(&include_bytes!("../../../../../fixtures/images/shapes.png")[..]).unwrap();
    let cut = Image::new(whole.media_type(), whole.size(), &whole.bytes()[..60]).unwrap();
    let mut scratch = Scratch::new();
    for images in [vec![whole.clone()], vec![whole, cut]] {
        scratch.append("1", EventKind::UserMessage { text: String::new(), images });
    }
    let loaded = rebuild(&scratch.bytes());
    assert_eq!(ids(&loaded), [1]);
    let [Fault::Unreadable { line: 2, reason }] = &loaded.faults[..] else { panic!("{:?}", loaded.faults) };
    assert!(reason.starts_with("the picture is a damaged png picture"), "{reason}");
}

#[test]
fn removed_line_breaks_the_chain_and_orphans_what_followed() {
    let mut lines = lines(&log());
    lines.remove(2);
    let loaded = rebuild(&lines.concat());
    let orphan = |id, parent| Fault::Orphan { id: EventId(id), parent: EventId(parent) };
    assert_eq!(loaded.faults, [Fault::Chain { line: 3 }, orphan(4, 3), orphan(5, 4), orphan(6, 5)]);
    assert_eq!(ids(&loaded), [1, 2]);
}

#[test]
fn doubled_line_is_counted_once() {
    let mut lines = lines(&log());
    lines.insert(3, lines[2].clone());
    let loaded = rebuild(&lines.concat());
    assert_eq!(loaded.faults, [Fault::Chain { line: 4 }, Fault::Duplicate { id: EventId(3) }]);
    assert_eq!(ids(&loaded), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn line_that_is_no_event_is_named() {
    let mut lines = lines(&log());
    for (text, reason) in [
        ("{}\n", "missing field `v`"),
        ("\u{fffd}\n", "expected value"),
        ("\n", "EOF while parsing"),
        (
            r#"{"v":6,"id":9,"time_ms":0,"session":"s","agent":"1","observed_by":"worker","type":"notice","data":{}}"#,
            "missing field `code`",
        ),
    ] {
        lines[5] = format!("{}\n", text.trim_end()).into_bytes();
        let loaded = rebuild(&lines.concat());
        let [
            Fault::Chain { line: 6 },
            Fault::Changed { line: 6 },
            Fault::Unreadable { line: 6, reason: found },
        ] = loaded.faults.as_slice()
        else {
            panic!("{:?}", loaded.faults)
        };
        assert!(found.contains(reason), "{found}");
        assert_eq!(ids(&loaded), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn event_of_another_session_is_left_out() {
    let mut lines = lines(&log());
    let stranger = String::from_utf8(lines[5].clone()).unwrap();
    lines[5] = stranger.replace(r#""session":"s-1""#, r#""session":"s-2""#).into_bytes();
    let loaded = rebuild(&lines.concat());
    let changed = Fault::Changed { line: 6 };
    assert_eq!(loaded.faults, [changed, Fault::Session { id: EventId(6), session: "s-2".to_owned() }]);
}

#[test]
fn digest_is_read_from_its_place_and_not_from_the_text_of_an_event() {
    let mut scratch = Scratch::new();
    scratch.append("1", said(&format!(r#"x","prev":"{}"}}"#, "1".repeat(64))));
    scratch.append("1", EventKind::ModelRequested { step: 1, attempt: 1 });
    assert_eq!(rebuild(&scratch.bytes()).faults, []);
}

fn json(event: &SessionEvent) -> String {
    serde_json::to_string(event).unwrap()
}

proptest! {
    #[test]
    fn shuffled_lines_give_the_same_tree(order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle()) {
        let log = log();
        let lines = lines(&log);
        let shuffled: Vec<u8> = order.iter().flat_map(|place| lines[*place].clone()).collect();
        let (whole, loaded) = (rebuild(&log), rebuild(&shuffled));
        let pairs = whole.tree.events().zip(loaded.tree.events());
        prop_assert_eq!(loaded.tree.len(), 6);
        prop_assert!(pairs.into_iter().all(|(left, right)| json(left) == json(right)));
        prop_assert_eq!(loaded.is_intact(), order.is_sorted());
    }

    #[test]
    fn damage_is_always_seen_and_never_a_panic(
        at in 0..6usize * 200,
        bytes in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let log = log();
        let at = at % log.len();
        let mut damaged = log[..at].to_vec();
        damaged.extend(&bytes);
        damaged.extend(&log[(at + bytes.len()).min(log.len())..]);
        let loaded = rebuild(&damaged);
        // Every line but the last is protected by the chain.
        let last = log[..log.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
        let changed = log.get(..last) != damaged.get(..last);
        prop_assert!(!changed || !loaded.faults.is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let loaded = rebuild(&bytes);
        prop_assert!(bytes.is_empty() || !loaded.faults.is_empty());
    }
}
