//! Parts of a patch: some of its hunks, or other texts for its files. All other bytes of the files stay.

use ipc::effect::{FileEffect, FileState, Patch};
use ipc::path::WirePath;
use protocol::approval::{ChangedText, ChangedTexts, FilePart, HunkRange, MOST_TEXT, merged};

/// Bits of a file mode besides the permissions: file type, set-id bits and sticky bit.
const TYPE: u32 = !0o777;

/// Hunks of a patch whose files are all text, from the comparison that the request showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchHunks {
    /// Hunks of each file, in the order of the patch.
    files: Vec<Vec<HunkRange>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPart {
    #[error("the part names {0}, which the change does not have")]
    UnknownFile(WirePath),
    #[error("the part does not name each file once, in the order of their paths")]
    Order,
    #[error("the part of {0} names no hunk")]
    NoHunk(WirePath),
    #[error("the change of {0} has no hunk {1}")]
    UnknownHunk(WirePath, usize),
    #[error("the part of {0} does not name each hunk once, in ascending order")]
    HunkOrder(WirePath),
    #[error("the change removes {0}, so that the part cannot have a text for it")]
    Removed(WirePath),
    #[error("the text of {0} is larger than {MOST_TEXT} bytes")]
    TooLarge(WirePath),
    #[error("the text of {0} contains a NUL byte")]
    NotText(WirePath),
    #[error("the part changes nothing")]
    Empty,
    #[error("the part is the whole change")]
    Whole,
}

impl PatchHunks {
    /// Returns the hunks of a patch; `files` has the hunks of each file. `None` if a file is not a text of limited
    /// size, or if its mode changes, which no hunk shows.
    pub fn new(patch: &Patch, files: Vec<Vec<HunkRange>>) -> Option<Self> {
        let offers = |file: &FileEffect| {
            let mut states = [&file.old, &file.new].into_iter().flatten();
            let modes = [&file.old, &file.new].map(|state| state.as_ref().map(|state| state.mode));
            let keeps_mode = modes[0].is_none() || modes[1].is_none() || modes[0] == modes[1];
            states.all(is_text) && keeps_mode
        };
        let offers = files.len() == patch.files.len() && patch.files.iter().all(offers);
        (offers && !files.is_empty()).then_some(Self { files })
    }

    /// Returns the old and new text of each file, with the hunks.
    pub fn texts(&self, patch: &Patch) -> ChangedTexts {
        let text = |state: &Option<FileState>| {
            state.as_ref().map(|state| String::from_utf8_lossy(&state.bytes).into_owned()).unwrap_or_default()
        };
        let files = patch.files.iter().zip(&self.files);
        let changed = |(file, hunks): (&FileEffect, &Vec<HunkRange>)| {
            let (old, new, hunks) = (text(&file.old), text(&file.new), hunks.clone());
            (file.path.clone(), ChangedText { old, new, hunks })
        };
        files.map(changed).collect()
    }

    /// Returns the selected part of a patch, without the files of which nothing is selected.
    pub fn part(&self, patch: &Patch, selected: &[FilePart]) -> Result<Patch, NoPart> {
        if !selected.is_sorted_by(|one, next| one.path() < next.path()) {
            return Err(NoPart::Order);
        }
        let is_known = |part: &&FilePart| patch.files.iter().any(|file| file.path == *part.path());
        if let Some(other) = selected.iter().find(|part| !is_known(part)) {
            return Err(NoPart::UnknownFile(other.path().clone()));
        }
        let mut files = Vec::new();
        for (file, hunks) in patch.files.iter().zip(&self.files) {
            let Some(selected) = selected.iter().find(|part| *part.path() == file.path) else { continue };
            let new = of_file(file, hunks, selected)?;
            if new != file.old {
                let replacements = if new == file.new { file.replacements } else { 0 };
                files.push(FileEffect { new, replacements, ..file.clone() });
            }
        }
        let part = Patch { files };
        if part.files.is_empty() {
            return Err(NoPart::Empty);
        }
        if part == *patch {
            return Err(NoPart::Whole);
        }
        Ok(part)
    }
}

/// True for a file whose text a person can read and edit: no special mode bits, UTF-8 without NUL, limited size.
fn is_text(state: &FileState) -> bool {
    let FileState { bytes, mode } = state;
    mode & TYPE == 0 && bytes.len() <= MOST_TEXT && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// Returns a file after the selected part of its change; `None` if the file does not exist afterwards.
fn of_file(file: &FileEffect, hunks: &[HunkRange], selected: &FilePart) -> Result<Option<FileState>, NoPart> {
    match (selected, &file.old, &file.new) {
        (FilePart::Text { path, .. }, _, None) => Err(NoPart::Removed(path.clone())),
        (FilePart::Text { path, text }, _, Some(new)) => {
            let state = FileState { bytes: text.clone().into_bytes(), mode: new.mode };
            match state.bytes.len() {
                too_many if too_many > MOST_TEXT => Err(NoPart::TooLarge(path.clone())),
                _ if !is_text(&state) => Err(NoPart::NotText(path.clone())),
                _ => Ok(Some(state)),
            }
        }
        (FilePart::Hunks { path, hunks: numbers }, old, new) => {
            if numbers.is_empty() {
                return Err(NoPart::NoHunk(path.clone()));
            }
            if let Some(number) = numbers.iter().find(|number| !(1..=hunks.len()).contains(*number)) {
                return Err(NoPart::UnknownHunk(path.clone(), *number));
            }
            if !numbers.is_sorted_by(|one, next| one < next) {
                return Err(NoPart::HunkOrder(path.clone()));
            }
            Ok(match (old, new) {
                (Some(old), Some(new)) => {
                    let bytes = merged(&old.bytes, &new.bytes, hunks, |n| numbers.contains(&(n + 1)));
                    Some(FileState { bytes, mode: new.mode })
                }
                // Its one hunk is the whole file.
                _ => new.clone(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::hunks::{hunks, write_hunks};

    fn state(bytes: &[u8]) -> FileState {
        FileState { bytes: bytes.to_vec(), mode: 0o644 }
    }

    fn file(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> FileEffect {
        let state = |bytes: Option<&[u8]>| bytes.map(state);
        FileEffect { path: path.into(), old: state(old), new: state(new), replacements: 3 }
    }

    fn ranges(old: &[u8], new: &[u8]) -> Vec<HunkRange> {
        let deadline = Instant::now() + Duration::from_mins(1);
        hunks(old, new, deadline).into_iter().map(|hunk| hunk.range).collect()
    }

    fn divided(files: Vec<FileEffect>) -> (Patch, PatchHunks) {
        let patch = Patch { files };
        let bytes = |state: &Option<FileState>| state.as_ref().map(|it| it.bytes.clone()).unwrap_or_default();
        let of_file = |file: &FileEffect| match (&file.old, &file.new) {
            (Some(old), Some(new)) => ranges(&old.bytes, &new.bytes),
            (old, new) => vec![HunkRange { old: 0..bytes(old).len(), new: 0..bytes(new).len() }],
        };
        let hunks = PatchHunks::new(&patch, patch.files.iter().map(of_file).collect()).unwrap();
        (patch, hunks)
    }

    fn of(path: &str, hunks: &[usize]) -> FilePart {
        FilePart::Hunks { path: path.into(), hunks: hunks.to_vec() }
    }

    fn text(path: &str, text: &str) -> FilePart {
        FilePart::Text { path: path.into(), text: text.to_owned() }
    }

    /// Generates lines with few different words and each kind of line end.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let word = prop_oneof![6 => Just("a"), 2 => Just("b"), 1 => Just(""), 1 => Just("@@ -1 +1 @@"), 1 => Just("é\r")];
        let end = prop_oneof![8 => Just("\n"), 2 => Just("\r\n")];
        proptest::collection::vec((word, end).prop_map(|(word, end)| format!("{word}{end}")), 0..60)
    }

    /// Generates an old text, and a new one that differs in some lines.
    fn pair() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let edits = proptest::collection::vec((any::<prop::sample::Index>(), 0..3u8), 0..6);
        (lines(), edits, any::<[bool; 2]>()).prop_map(|(old, edits, ends)| {
            let mut new = old.clone();
            for (at, kind) in edits {
                match (kind, new.len()) {
                    (0, _) => new.insert(at.index(new.len() + 1), "x\n".to_owned()),
                    (_, 0) => {}
                    (1, len) => drop(new.remove(at.index(len))),
                    (_, len) => new[at.index(len)] = "y\n".to_owned(),
                }
            }
            let text = |lines: Vec<String>, has_end: bool| {
                let text = lines.concat();
                let cut = if has_end { text.as_str() } else { text.trim_end_matches('\n') };
                cut.as_bytes().to_vec()
            };
            (text(old, ends[0]), text(new, ends[1]))
        })
    }

    /// Applies the hunks for which `takes` is true, line by line as git does, for comparison with [`PatchHunks::part`].
    fn applied(old: &[u8], new: &[u8], takes: &dyn Fn(usize) -> bool) -> Vec<u8> {
        let deadline = Instant::now() + Duration::from_mins(1);
        let (mut out, mut rest) = (Vec::new(), old);
        for (_, hunk) in hunks(old, new, deadline).iter().enumerate().filter(|(n, _)| takes(*n)) {
            let gap = hunk.range.old.start - (old.len() - rest.len());
            out.extend_from_slice(&rest[..gap]);
            rest = &rest[gap..];
            let mut body: Vec<(u8, Vec<u8>)> = Vec::new();
            for line in hunk.text.split_inclusive(|byte| *byte == b'\n').skip(1) {
                match line[0] {
                    // Takes the line feed off the line before.
                    b'\\' => drop(body.last_mut().and_then(|(_, line)| line.pop())),
                    sign => body.push((sign, line[1..].to_vec())),
                }
            }
            for (sign, line) in body {
                if sign != b'+' {
                    rest = rest.strip_prefix(line.as_slice()).expect("the old text has the line");
                }
                if sign != b'-' {
                    out.extend_from_slice(&line);
                }
            }
        }
        out.extend_from_slice(rest);
        out
    }

    proptest! {
        #[test]
        fn a_part_is_the_merge_of_its_hunks_and_the_rest_is_as_before((old, new) in pair(), chosen in any::<u64>()) {
            let ranges = ranges(&old, &new);
            let takes = |n: usize| chosen >> (n % 64) & 1 == 1;
            let part = merged(&old, &new, &ranges, takes);
            prop_assert_eq!(&part, &applied(&old, &new, &takes));
            prop_assert_eq!(&merged(&old, &new, &ranges, |_| true), &new);
            prop_assert_eq!(&merged(&old, &new, &ranges, |_| false), &old);
            // Each region that is not chosen is in the part byte for byte, in order.
            let mut at = 0;
            let mut last = 0;
            for (n, range) in ranges.iter().enumerate() {
                if takes(n) {
                    let kept = &old[last..range.old.start];
                    prop_assert_eq!(&part[at..at + kept.len()], kept);
                    at += kept.len() + range.new.len();
                    last = range.old.end;
                }
            }
            prop_assert_eq!(&part[at..], &old[last..]);
        }

        #[test]
        fn the_texts_of_the_hunks_are_the_diff((old, new) in pair()) {
            let deadline = Instant::now() + Duration::from_mins(1);
            let mut whole = Vec::new();
            write_hunks(&old, &new, deadline, &mut whole).unwrap();
            let texts: Vec<u8> = hunks(&old, &new, deadline).into_iter().flat_map(|hunk| hunk.text).collect();
            prop_assert_eq!(texts, whole);
        }
    }

    const OLD: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n9\nend";
    const NEW: &[u8] = b"one\n2\n3\n4\n5\n6\n7\n8\n9\nEND\n";

    #[test]
    fn a_file_is_changed_by_the_chosen_hunks_alone() {
        let (patch, hunks) = divided(vec![file("/p/a", Some(OLD), Some(NEW))]);
        let part = hunks.part(&patch, &[of("/p/a", &[1])]).unwrap();
        let expected = b"one\n2\n3\n4\n5\n6\n7\n8\n9\nend";
        assert_eq!(part.files, [FileEffect { replacements: 0, ..file("/p/a", Some(OLD), Some(expected)) }]);
        let part = hunks.part(&patch, &[of("/p/a", &[2])]).unwrap();
        assert_eq!(part.files[0].new, Some(state(b"1\n2\n3\n4\n5\n6\n7\n8\n9\nEND\n")));
        let part = hunks.part(&patch, &[text("/p/a", "mine\r\n")]).unwrap();
        assert_eq!((&part.files[0].old, &part.files[0].new), (&Some(state(OLD)), &Some(state(b"mine\r\n"))));
    }

    #[test]
    fn new_and_removed_files_are_taken_whole_and_a_new_one_may_be_edited() {
        let files = vec![
            file("/p/a", Some(OLD), Some(NEW)),
            file("/p/gone", Some(b"x"), None),
            file("/p/new", None, Some(b"made\n")),
        ];
        let (patch, hunks) = divided(files.clone());
        let part = |selected: &[FilePart]| hunks.part(&patch, selected).map(|part| part.files);
        assert_eq!(part(&[of("/p/new", &[1])]), Ok(vec![files[2].clone()]));
        assert_eq!(part(&[of("/p/gone", &[1])]), Ok(vec![files[1].clone()]));
        assert_eq!(part(&[text("/p/new", "")]).unwrap()[0].new, Some(state(b"")));
        assert_eq!(part(&[of("/p/a", &[1, 2]), of("/p/new", &[1])]).unwrap().len(), 2);
        let all = [of("/p/a", &[1, 2]), of("/p/gone", &[1]), of("/p/new", &[1])];
        assert_eq!(part(&all), Err(NoPart::Whole));
        assert_eq!(part(&[text("/p/gone", "x")]), Err(NoPart::Removed("/p/gone".into())));
        assert_eq!(part(&[text("/p/gone", "")]), Err(NoPart::Removed("/p/gone".into())));
    }

    #[test]
    fn what_is_no_part_is_refused_and_says_why() {
        let (patch, hunks) =
            divided(vec![file("/p/a", Some(OLD), Some(NEW)), file("/p/b", Some(b"x"), Some(b"y"))]);
        let whole = String::from_utf8(NEW.to_vec()).unwrap();
        let unchanged = String::from_utf8(OLD.to_vec()).unwrap();
        let a = || WirePath::from("/p/a");
        for (selected, why) in [
            (vec![], NoPart::Empty),
            (vec![of("/p/a", &[])], NoPart::NoHunk(a())),
            (vec![of("/p/a", &[0])], NoPart::UnknownHunk(a(), 0)),
            (vec![of("/p/a", &[1, 3])], NoPart::UnknownHunk(a(), 3)),
            (vec![of("/p/a", &[usize::MAX])], NoPart::UnknownHunk(a(), usize::MAX)),
            (vec![of("/p/a", &[2, 1])], NoPart::HunkOrder(a())),
            (vec![of("/p/a", &[1, 1])], NoPart::HunkOrder(a())),
            (vec![of("/p/c", &[1])], NoPart::UnknownFile("/p/c".into())),
            (vec![of("/p/../p/a", &[1])], NoPart::UnknownFile("/p/../p/a".into())),
            (vec![of("/p/b", &[1]), of("/p/a", &[1])], NoPart::Order),
            (vec![of("/p/a", &[1]), of("/p/a", &[2])], NoPart::Order),
            (vec![of("/p/a", &[1]), text("/p/a", "x")], NoPart::Order),
            (vec![text("/p/a", &unchanged)], NoPart::Empty),
            (vec![of("/p/a", &[1, 2]), of("/p/b", &[1])], NoPart::Whole),
            (vec![text("/p/a", &whole), text("/p/b", "y")], NoPart::Whole),
            (vec![text("/p/a", "nul\0")], NoPart::NotText(a())),
            (vec![text("/p/a", &"x".repeat(MOST_TEXT + 1))], NoPart::TooLarge(a())),
        ] {
            assert_eq!(hunks.part(&patch, &selected), Err(why), "{selected:.200?}");
        }
        assert!(hunks.part(&patch, &[text("/p/a", &"x".repeat(MOST_TEXT))]).is_ok());
    }

    #[test]
    fn only_texts_that_a_person_can_read_whole_have_parts() {
        let large = vec![b'x'; MOST_TEXT + 1];
        let offers = |file: FileEffect| {
            let patch = Patch { files: vec![file] };
            PatchHunks::new(&patch, vec![Vec::new()]).is_some()
        };
        assert!(offers(file("/p/a", Some(OLD), Some(NEW))));
        for (old, new) in [
            (Some(&b"\xff"[..]), Some(&b"x"[..])),
            (Some(b"x"), Some(b"\xff")),
            (Some(b"\0"), Some(b"x")),
            (Some(&large), Some(b"x")),
            (Some(b"x"), Some(&large)),
            (None, Some(b"\xc3")),
            (Some(b"\0"), None),
        ] {
            assert!(!offers(file("/p/a", old, new)), "{old:.9?} {new:.9?}");
        }
        let with_mode = |old, new| {
            let state = |mode| Some(FileState { bytes: b"x".to_vec(), mode });
            FileEffect { old: state(old), new: state(new), ..file("/p/a", None, None) }
        };
        assert!(offers(with_mode(0o755, 0o755)));
        assert!(!offers(with_mode(0o644, 0o755)), "no hunk shows a mode");
        assert!(!offers(with_mode(ipc::effect::LINK, ipc::effect::LINK)));
        let two = Patch { files: vec![file("/p/a", None, Some(b"x")), file("/p/b", None, None)] };
        assert_eq!(PatchHunks::new(&two, vec![Vec::new()]), None, "each file has its hunks");
    }
}
