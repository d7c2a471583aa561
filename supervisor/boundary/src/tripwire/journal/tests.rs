//! Tests with two sessions and a killed one, each a [`Tripwire`] in this process. Even within one process, the locks of
//! different open files exclude each other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::{Approved, Report, Tripwire, Watch, digest};
use super::{BaselineChoice, CutOffChange, JournalOptions, settle_leftovers};

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.project().join(".git/objects")).unwrap();
        fs::create_dir_all(place.project().join(".git/refs")).unwrap();
        place.write(".git/HEAD", "ref: refs/heads/main\n");
        place.write(".git/config", "[core]\n\tbare = false\n");
        place.write(".git/hooks/pre-push", "own");
        place
    }

    fn project(&self) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join("project")
    }

    fn journals(&self) -> PathBuf {
        self.directory.path().join("state/baselines")
    }

    fn watch(&self) -> Watch {
        let journals = JournalOptions { directory: self.journals(), allow_shared: false };
        Watch { journals: Some(journals), ..Watch::of(self.project()) }
    }

    fn session(&self) -> Tripwire {
        Tripwire::set(&self.watch()).unwrap()
    }

    fn at_work(&self) -> Tripwire {
        let mut session = self.session();
        assert_eq!(session.begin_call().unwrap(), Report::default());
        session
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.project().join(name)).ok()
    }

    fn next_start(&self, word: BaselineChoice) -> Vec<String> {
        let mut asked = Vec::new();
        let decide = |found: &[CutOffChange]| {
            asked.extend(found.iter().map(|place| self.inside(&place.path)));
            Ok(vec![word; found.len()])
        };
        settle_leftovers(&self.watch(), decide).unwrap();
        asked
    }

    fn inside(&self, path: &Path) -> String {
        path.strip_prefix(self.project()).unwrap().display().to_string()
    }

    fn is_left(&self) -> bool {
        fs::read_dir(self.journals()).is_ok_and(|mut entries| entries.next().is_some())
    }
}

fn changes(report: &Report) -> Vec<String> {
    report.changes.iter().map(|change| change.path.to_string()).collect()
}

#[test]
fn what_another_session_planted_is_not_put_back() {
    for journals in [true, false] {
        let place = Place::new();
        let watch =
            |place: &Place| Watch { journals: place.watch().journals.filter(|_| journals), ..place.watch() };
        let mut one = Tripwire::set(&watch(&place)).unwrap();
        one.begin_call().unwrap();
        place.write(".envrc", "evil");
        place.write("vendored/.git/HEAD", "ref: refs/heads/main\n");
        place.write("vendored/.git/hooks/post-checkout", "evil");
        place.write(".git/hooks/pre-push", "evil");
        let mut other = Tripwire::set(&watch(&place)).unwrap();
        other.begin_call().unwrap();
        assert_eq!(changes(&one.end()).len(), 3);
        let found = other.end();
        // The control: with a state of its own, the other session restores everything.
        assert_eq!(place.read(".envrc").is_none(), journals, "{found:?}");
        assert_eq!(place.read("vendored/.git/hooks/post-checkout").is_none(), journals);
        assert_eq!(place.read(".git/hooks/pre-push").as_deref(), Some(if journals { "own" } else { "evil" }));
    }
}

#[test]
fn a_person_changes_what_they_like_while_nothing_runs() {
    let place = Place::new();
    let (mut one, mut other) = (place.session(), place.session());
    place.write(".envrc", "mine");
    place.write(".git/config", "[core]\n\tbare = false\n\tpager = less\n");
    let told = one.begin_call().unwrap().notes.join("\n");
    assert!(told.contains(".envrc") && told.contains(".git/config"), "{told}");
    place.write(".envrc", "evil");
    other.begin_call().unwrap();
    assert_eq!(changes(&one.check()), [".envrc"]);
    one.end_call();
    assert_eq!(other.end(), Report::default());
    assert_eq!(place.read(".envrc").as_deref(), Some("mine"));
    assert_eq!(one.end(), Report::default());
    // A repository that the person made between two turns.
    place.write("new/.git/HEAD", "ref: refs/heads/main\n");
    place.write("new/.git/hooks/pre-push", "mine");
    one.begin_call().unwrap();
    assert_eq!(one.end(), Report::default());
    assert_eq!(place.read("new/.git/hooks/pre-push").as_deref(), Some("mine"));
}

#[test]
fn the_last_session_takes_the_journal_with_it() {
    let place = Place::new();
    let (mut one, other) = (place.at_work(), place.session());
    one.end();
    drop(one);
    assert!(place.is_left(), "the other one lives");
    drop(other);
    assert!(!place.is_left());
    place.write(".envrc", "mine");
    assert!(place.next_start(BaselineChoice::Restore).is_empty());
    assert_eq!(place.read(".envrc").as_deref(), Some("mine"));
}

#[test]
fn what_a_killed_session_left_is_asked_about() {
    for word in [BaselineChoice::Mine, BaselineChoice::Restore] {
        let place = Place::new();
        let killed = place.at_work();
        place.write(".envrc", "evil");
        place.write(".git/hooks/pre-push", "evil");
        place.write("vendored/.git/HEAD", "ref: refs/heads/main\n");
        place.write("vendored/.git/hooks/post-checkout", "evil");
        place.write(".vscode/tasks.json", "evil");
        drop(killed);
        // A start that can ask nobody changes nothing.
        let refused = settle_leftovers(&place.watch(), |_| Err(io::ErrorKind::Other.into()));
        assert!(refused.is_err() && place.read(".envrc").is_some());
        let refused = Tripwire::set(&place.watch()).unwrap_err().to_string();
        assert!(refused.contains(".envrc") && refused.contains("hint:"), "{refused}");
        let asked = place.next_start(word);
        // All changes in a directory are one question.
        assert_eq!(asked, [".envrc", ".git/hooks/pre-push", ".vscode", "vendored/.git/hooks/post-checkout"]);
        let stays = word == BaselineChoice::Mine;
        assert_eq!(place.read(".envrc").is_some(), stays);
        assert_eq!(place.read("vendored/.git/hooks/post-checkout").is_some(), stays);
        assert_eq!(place.read(".git/hooks/pre-push").as_deref(), Some(if stays { "evil" } else { "own" }));
        assert_eq!(place.read(".vscode/tasks.json").is_some(), stays);
        assert!(!place.is_left());
        assert_eq!(place.at_work().end(), Report::default());
    }
}

#[test]
fn nothing_is_asked_where_nothing_differs_or_nothing_ran() {
    let place = Place::new();
    drop(place.at_work());
    place.write("src/main.rs", "fn main() {}");
    assert!(place.is_left());
    assert!(place.next_start(BaselineChoice::Restore).is_empty());
    // Killed between two calls of a turn, without a change of watched files.
    let mut killed = place.at_work();
    killed.check();
    killed.end_call();
    drop(killed);
    assert!(place.next_start(BaselineChoice::Restore).is_empty());
    // Killed while nothing ran.
    drop(place.session());
    place.write(".envrc", "mine");
    assert!(place.next_start(BaselineChoice::Restore).is_empty());
    assert_eq!(place.read(".envrc").as_deref(), Some("mine"));
}

#[test]
fn a_session_that_lives_puts_back_what_a_killed_one_left() {
    let place = Place::new();
    let mut living = place.session();
    let killed = place.at_work();
    place.write(".envrc", "evil");
    place.write("vendored/.git/HEAD", "ref: refs/heads/main\n");
    place.write("vendored/.git/hooks/post-checkout", "evil");
    drop(killed);
    assert!(place.next_start(BaselineChoice::Mine).is_empty(), "the living one has the say");
    // A session that starts meanwhile takes none of this for the person's.
    let mut third = place.session();
    let found = living.begin_call().unwrap();
    assert_eq!(changes(&found), [".envrc", "vendored/.git/hooks/post-checkout"]);
    assert!(place.read(".envrc").is_none());
    assert_eq!(living.end(), Report::default());
    third.begin_call().unwrap();
    assert_eq!(third.end(), Report::default());
    drop((living, third));
    assert!(!place.is_left());
}

#[test]
fn what_one_session_was_approved_stays_in_the_other() {
    let place = Place::new();
    let (mut one, mut other) = (place.session(), place.at_work());
    place.write(".envrc", "approved");
    let path = place.project().join(".envrc");
    one.accept(&[Approved { path, digest: Some(digest(b"approved")) }]);
    assert_eq!(other.end(), Report::default());
    assert_eq!(place.read(".envrc").as_deref(), Some("approved"));
}

#[test]
fn a_directory_that_another_state_directory_has_is_refused() {
    let place = Place::new();
    let elsewhere = |allow_shared| {
        let directory = place.directory.path().join("other-state");
        Watch { journals: Some(JournalOptions { directory, allow_shared }), ..place.watch() }
    };
    let own = place.session();
    let refused = Tripwire::set(&elsewhere(false)).unwrap_err().to_string();
    assert!(refused.contains("--allow-degraded"), "{refused}");
    let mut degraded = Tripwire::set(&elsewhere(true)).unwrap();
    assert!(degraded.begin_call().unwrap().notes[0].contains("could be taken for yours"));
    degraded.end();
    drop((own, degraded));
    Tripwire::set(&elsewhere(false)).unwrap();
}

#[test]
fn another_directory_at_the_same_path_has_no_past() {
    let place = Place::new();
    drop(place.at_work());
    fs::rename(place.project(), place.directory.path().join("old")).unwrap();
    place.write(".envrc", "mine");
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    assert!(place.next_start(BaselineChoice::Restore).is_empty());
    let told = place.session().begin_call().unwrap().notes;
    assert!(told.iter().any(|note| note.contains("is another directory than before")), "{told:?}");
    assert_eq!(place.read(".envrc").as_deref(), Some("mine"));
}

#[test]
fn a_directory_that_was_moved_keeps_its_past() {
    let place = Place::new();
    drop(place.at_work());
    place.write(".envrc", "evil");
    let moved = place.project().with_file_name("moved");
    fs::rename(place.project(), &moved).unwrap();
    let watch = Watch { project: moved.clone(), ..place.watch() };
    let mut asked = 0;
    settle_leftovers(&watch, |found| {
        asked = found.len();
        Ok(vec![BaselineChoice::Restore; found.len()])
    })
    .unwrap();
    assert_eq!((asked, moved.join(".envrc").exists()), (1, false));
}

#[test]
fn a_line_that_was_cut_off_is_dropped() {
    let place = Place::new();
    let mut session = place.session();
    let mut lines = fs::read_dir(place.journals()).unwrap().map(|entry| entry.unwrap().path().join("lines"));
    let path = lines.next().unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [whole.as_slice(), b"{\"changed\":{\"part\":\"lis"].concat()).unwrap();
    session.begin_call().unwrap();
    place.write(".envrc", "evil");
    assert_eq!(changes(&session.end()), [".envrc"]);
    let mut other = place.session();
    assert_eq!(other.begin_call().unwrap(), Report::default());
    // A whole line that is invalid prevents every call.
    fs::write(&path, [fs::read(&path).unwrap().as_slice(), b"{}\n"].concat()).unwrap();
    other.end_call();
    let error = session.begin_call().unwrap_err().to_string();
    assert!(error.contains("lines") && error.contains("hint:"), "{error}");
    // The files are compared all the same.
    place.write(".envrc", "evil");
    let found = other.end();
    assert!(place.read(".envrc").is_none() && !found.notes.is_empty(), "{found:?}");
}

#[test]
fn names_that_are_not_text_are_kept() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b".vscode/\xff\n.json");
    fs::create_dir(place.project().join(".vscode")).unwrap();
    fs::write(place.project().join(name), b"\xff\0").unwrap();
    std::os::unix::fs::symlink("\u{1}/x", place.project().join(".vscode/link")).unwrap();
    let (one, mut other) = (place.at_work(), place.session());
    fs::remove_dir_all(place.project().join(".vscode")).unwrap();
    other.begin_call().unwrap();
    assert_eq!(other.end().changes.len(), 3);
    assert_eq!(fs::read(place.project().join(name)).unwrap(), b"\xff\0");
    drop(one);
}
