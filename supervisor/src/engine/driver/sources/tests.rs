use ipc::id::CallId;
use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000_000_000;

fn call(number: u64) -> AgentCall {
    AgentCall { agent: AgentId::root(), call: CallId(number) }
}

/// Calls of the first agent: commands, and file tools that report a change of `/p/f`.
struct Play(Writers);

impl Play {
    fn new() -> Self {
        Self(Writers::new("/p".into()))
    }

    fn command(&mut self, number: u64, from: i64, to: i64) {
        self.0.began(call(number), vec!["/p".into()], None, from);
        self.0.ended(&AgentId::root(), CallId(number), &[], to);
    }

    fn tool(&mut self, number: u64, (old, new): (Option<&str>, &str), (from, to): (i64, i64)) {
        self.0.began(call(number), vec!["/p".into()], Some(vec!["/p/f".into()]), from);
        self.0.ended(&AgentId::root(), CallId(number), &[diff(old, new)], to);
    }

    fn tell(&mut self, asked_ns: i64, changes: Vec<(SeenChange, Option<i64>)>) -> Vec<SeenChange> {
        let seen = CheckpointChanges { asked_ns, changes, ..CheckpointChanges::default() };
        self.0.tell(seen, Ignored::default()).map(|changed| changed.files).unwrap_or_default()
    }
}

fn diff(old: Option<&str>, new: &str) -> FileDiff {
    let old_text = old.map(str::to_owned);
    FileDiff { path: "/p/f".into(), first_line: Some(1), old_text, new_text: new.to_owned() }
}

fn change(change: ChangeKind, old: Option<&str>, new: &str) -> SeenChange {
    let diff = Some(diff(old, new));
    let (by, modes, content) = (Vec::new(), None, SeenContent::Text);
    SeenChange { path: "f".into(), change, by, content, modes, added: 0, removed: 0, diff }
}

fn calls(files: &[SeenChange]) -> Vec<Vec<u64>> {
    files.iter().map(|file| file.by.iter().map(|call| call.call.0).collect()).collect()
}

#[test]
fn the_time_of_the_file_says_which_of_several_calls_it_was() {
    let added = || change(ChangeKind::Added, None, "x\n");
    for (at, by) in [(3, vec![1]), (6, vec![2]), (9, vec![]), (4, vec![1])] {
        let mut play = Play::new();
        play.command(1, 2 * SECOND, 4 * SECOND);
        play.command(2, 5 * SECOND, 7 * SECOND);
        assert_eq!(calls(&play.tell(10 * SECOND, vec![(added(), Some(at * SECOND))])), [by], "{at}");
    }
    // A deleted file has no timestamp, and one of another clock is ignored.
    for at in [None, Some(1000 * SECOND), Some(SECOND / 10)] {
        let mut play = Play::new();
        play.tell(4 * SECOND, vec![]);
        play.command(1, 5 * SECOND, 6 * SECOND);
        play.command(2, 7 * SECOND, 8 * SECOND);
        let gone = change(ChangeKind::Deleted, Some("x\n"), "");
        assert_eq!(calls(&play.tell(9 * SECOND, vec![(gone, at)])), [vec![1, 2]], "{at:?}");
    }
}

#[test]
fn calls_of_one_reply_run_one_after_the_other() {
    let mut play = Play::new();
    play.0.began(call(1), vec!["/p".into()], None, SECOND);
    play.0.began(call(2), vec!["/p".into()], None, SECOND);
    play.0.ended(&AgentId::root(), CallId(1), &[], 3 * SECOND);
    play.0.ended(&AgentId::root(), CallId(2), &[], 5 * SECOND);
    let made = |at| (change(ChangeKind::Added, None, "x\n"), Some(at * SECOND));
    assert_eq!(calls(&play.tell(6 * SECOND, vec![made(2), made(4)])), [vec![1], vec![2]]);
}

#[test]
fn a_call_is_named_only_for_places_where_it_may_write() {
    let mut play = Play::new();
    play.0.began(call(1), vec!["/p/sub".into()], None, SECOND);
    let files = play.tell(3 * SECOND, vec![(change(ChangeKind::Added, None, "x\n"), Some(2 * SECOND))]);
    assert_eq!(calls(&files), [Vec::<u64>::new()], "it is somebody else's");
}

#[test]
fn what_a_tool_told_is_not_told_again_and_what_others_did_to_its_file_is() {
    let mut play = Play::new();
    play.tool(1, (Some("a\n"), "b\n"), (SECOND, 2 * SECOND));
    let whole = change(ChangeKind::Modified, Some("a\n"), "b\n");
    assert_eq!(play.tell(3 * SECOND, vec![(whole, Some(2 * SECOND))]), []);

    let mut play = Play::new();
    play.tool(1, (Some("a\n"), "b\n"), (SECOND, 2 * SECOND));
    play.command(2, 3 * SECOND, 4 * SECOND);
    let more = change(ChangeKind::Modified, Some("a\n"), "b\nc\n");
    let files = play.tell(5 * SECOND, vec![(more, Some(3 * SECOND))]);
    assert_eq!(calls(&files), [vec![2]]);
    assert_eq!(files[0].diff, Some(diff(Some("b\n"), "b\nc\n")));
    assert_eq!((files[0].added, files[0].removed), (1, 0));
}

#[test]
fn what_a_tool_wrote_and_a_command_took_back_is_told() {
    for (is_gone, old, kind) in
        [(true, None, ChangeKind::Deleted), (false, Some("a\n"), ChangeKind::Modified)]
    {
        let mut play = Play::new();
        play.tool(1, (old, "b\n"), (SECOND, 2 * SECOND));
        play.command(2, 3 * SECOND, 4 * SECOND);
        let path = || BTreeSet::from([ProjectPath::try_from(WirePath::from("f")).unwrap()]);
        assert_eq!(play.0.written(), path());
        let mut seen = CheckpointChanges { asked_ns: 5 * SECOND, ..CheckpointChanges::default() };
        *(if is_gone { &mut seen.gone } else { &mut seen.unchanged }) = path();
        let files = play.0.tell(seen, Ignored::default()).unwrap().files;
        assert_eq!(calls(&files), [vec![2]]);
        assert_eq!(files[0].change, kind);
        assert_eq!(files[0].diff, Some(diff(Some("b\n"), old.unwrap_or_default())));
        assert!(play.tell(6 * SECOND, vec![]).is_empty(), "it is told once");
    }
}

#[test]
fn what_is_ignored_is_told_when_it_is_news() {
    let mut play = Play::new();
    let ignored = Ignored { count: 1, first: vec!["target".into()] };
    let seen = || CheckpointChanges { asked_ns: SECOND, ..CheckpointChanges::default() };
    assert_eq!(play.0.tell(seen(), ignored.clone()).unwrap().ignored, ignored);
    assert_eq!(play.0.tell(seen(), ignored), None);
}

#[test]
fn after_a_run_that_was_cut_off_nobody_is_blamed() {
    let mut play = Play::new();
    let added = || vec![(change(ChangeKind::Added, None, "x\n"), Some(SECOND))];
    let seen = CheckpointChanges {
        asked_ns: SECOND,
        changes: added(),
        after_cut: true,
        ..CheckpointChanges::default()
    };
    assert!(play.0.tell(seen, Ignored::default()).unwrap().cut_off);
    // From then on this process knows the calls that ran.
    let seen = CheckpointChanges {
        asked_ns: 2 * SECOND,
        changes: added(),
        after_cut: true,
        ..CheckpointChanges::default()
    };
    assert!(!play.0.tell(seen, Ignored::default()).unwrap().cut_off);
}

fn lines() -> impl Strategy<Value = String> {
    proptest::collection::vec("[ab]{0,2}\n", 0..6).prop_map(|lines| lines.concat())
}

proptest! {
    /// Tests that the diffs of tools and the changes found by snapshots together lead from the first text to the last.
    #[test]
    fn tools_and_snapshots_report_every_step(texts in proptest::collection::vec(lines(), 2..6), by_tool in any::<u8>()) {
        let mut play = Play::new();
        let mut told = Vec::new();
        let mut now = texts[0].clone();
        for (n, next) in (0_i64..).zip(&texts[1..]) {
            let number = u64::try_from(n).unwrap() + 1;
            let time = (n * 10 * SECOND, n * 10 * SECOND + SECOND);
            let before = &texts[usize::try_from(n).unwrap()];
            let seen = (next != before)
                .then(|| (change(ChangeKind::Modified, Some(before), next), Some(time.0)));
            let is_tool = by_tool >> n & 1 == 1;
            if is_tool {
                play.tool(number, (Some(&now), next), time);
                told.push((now.clone(), next.clone()));
            } else {
                play.command(number, time.0, time.1);
            }
            let files = play.tell(time.1 + 5 * SECOND, seen.into_iter().collect());
            prop_assert!(!is_tool || files.is_empty());
            told.extend(files.into_iter().map(|file| {
                let diff = file.diff.unwrap();
                (diff.old_text.unwrap(), diff.new_text)
            }));
            now.clone_from(next);
        }
        let mut text = texts[0].clone();
        for (old, new) in told {
            prop_assert_eq!(&old, &text);
            text = new;
        }
        prop_assert_eq!(text, now);
    }
}
