//! Answers that approve a part of a change of files: the effect of that part, and the text about it for the model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ipc::effect::{Effect, FileEffect, Patch};
use ipc::text::hexadecimal;
use protocol::approval::{ChangePart, ChangedTexts, FileChange, FileChanges, FilePart};
use protocol::event::{AppliedPart, LeftOutHunks};
use sha2::{Digest, Sha256};

use super::{Proposal, Subject, effect_digest};
use crate::hunks::hunks;
use crate::part::{NoPart, PatchHunks};

/// Maximum size in bytes of each difference in the text for the model.
const MOST_TOLD: usize = 4096;

/// Time limit for comparing an edited text with the one that the model wanted.
const TIME: Duration = Duration::from_millis(200);

/// Approved part of a change of files.
#[derive(Clone, Debug)]
pub struct SubjectPart {
    /// Approved part of each call's change, in the order of the request; `None` if nothing of that change is approved.
    pub calls: Vec<Option<CallPart>>,
    /// Summary for the session log.
    pub applied: AppliedPart,
}

#[derive(Clone, Debug)]
pub struct CallPart {
    pub effect: Arc<Effect>,
    pub applied: AppliedPart,
    /// Text for the model about omitted and edited parts; `None` if the whole change is approved.
    pub told: Option<String>,
}

impl Proposal {
    /// Returns the proposal with the approved part as its effect.
    #[must_use]
    pub fn with_part(self, part: &CallPart) -> Self {
        Self { effect: Arc::clone(&part.effect), digest: part.applied.effect.clone(), hunks: None, ..self }
    }

    fn patch(&self) -> Option<(&Patch, &PatchHunks)> {
        match &*self.effect {
            Effect::Patch(patch) => Some((patch, self.hunks.as_ref()?)),
            Effect::Exec(_) => None,
        }
    }
}

impl Subject {
    /// Returns the old and new texts of the changed files; `None` if only the whole change can be approved.
    pub(super) fn texts(&self) -> Option<ChangedTexts> {
        let mut texts = ChangedTexts::new();
        for proposal in self.proposals()? {
            let (patch, hunks) = proposal.patch()?;
            texts.extend(hunks.texts(patch));
        }
        Some(texts)
    }

    /// Returns the part that an answer approves. `digest` is the digest of the whole change, which the answer has to
    /// repeat. The error has the reason why the answer is invalid.
    pub(super) fn part(&self, part: &ChangePart, digest: Option<&str>) -> Result<SubjectPart, String> {
        let whole = self.digest();
        if digest != Some(&*whole) {
            return Err("an answer in part has to contain the digest of the whole change".to_owned());
        }
        let no_part = || "no part of this request can be approved".to_owned();
        let proposals = self.proposals().ok_or_else(no_part)?;
        let patches: Option<Vec<_>> = proposals.iter().map(|proposal| proposal.patch()).collect();
        let patches = patches.ok_or_else(no_part)?;
        let is_known = |part: &&FilePart| patches.iter().any(|(patch, _)| has(patch, part));
        if let Some(other) = part.files.iter().find(|part| !is_known(part)) {
            return Err(NoPart::UnknownFile(other.path().clone()).to_string());
        }
        if !part.files.is_sorted_by(|one, next| one.path() < next.path()) {
            return Err(NoPart::Order.to_string());
        }
        let mut calls = Vec::new();
        for (proposal, (patch, hunks)) in proposals.iter().zip(&patches) {
            calls.push(call_part(proposal, patch, hunks, &part.files)?);
        }
        let parts: Vec<_> = calls.iter().flatten().collect();
        if parts.is_empty() {
            return Err(NoPart::Empty.to_string());
        }
        if parts.len() == calls.len() && parts.iter().all(|part| part.told.is_none()) {
            return Err(NoPart::Whole.to_string());
        }
        // Comes last, since the errors above say more.
        let shown = FileChanges(proposals.iter().flat_map(|one| one.changes.0.clone()).collect());
        if ChangePart::of(&whole, &shown, part.files.clone()).as_ref() != Some(part) {
            return Err("the answer belongs to another part of the change: its digest differs".to_owned());
        }
        let applied = applied(&shown, &part.files, effects_digest(&parts));
        Ok(SubjectPart { calls, applied })
    }

    /// Returns the prepared changes; `None` for an action that changes no files.
    fn proposals(&self) -> Option<Vec<&Proposal>> {
        match self {
            Self::Effect { proposal, denied: None, .. } => Some(vec![proposal]),
            Self::Changes(all) => Some(all.iter().map(|(_, change)| &change.proposal).collect()),
            Self::Effect { .. } | Self::External(_) | Self::Fetch(_) | Self::Agent(_) | Self::Plan(_) => None,
        }
    }
}

fn has(patch: &Patch, part: &FilePart) -> bool {
    patch.files.iter().any(|file| file.path == *part.path())
}

/// Returns the approved part of one call's change; `None` if nothing of that change is selected.
fn call_part(
    proposal: &Proposal,
    patch: &Patch,
    hunks: &PatchHunks,
    selected: &[FilePart],
) -> Result<Option<CallPart>, String> {
    let selected: Vec<_> = selected.iter().filter(|part| has(patch, part)).cloned().collect();
    if selected.is_empty() {
        return Ok(None);
    }
    let (effect, told) = match hunks.part(patch, &selected) {
        Ok(part) => (Arc::new(Effect::Patch(part)), Some(in_words(patch, &proposal.changes, &selected))),
        Err(NoPart::Whole) => (Arc::clone(&proposal.effect), None),
        Err(NoPart::Empty) => return Ok(None),
        Err(why) => return Err(why.to_string()),
    };
    let digest = effect_digest(&effect).map_err(|error| error.to_string())?;
    let applied = applied(&proposal.changes, &selected, digest);
    Ok(Some(CallPart { effect, applied, told }))
}

/// Returns the digest of the parts' effects: for a single part its own, for several the SHA-256 of all digests.
fn effects_digest(parts: &[&CallPart]) -> String {
    match parts {
        [one] => one.applied.effect.clone(),
        several => {
            let all: String = several.iter().map(|part| part.applied.effect.as_str()).collect();
            hexadecimal(&Sha256::digest(all))
        }
    }
}

fn applied(shown: &FileChanges, selected: &[FilePart], effect: String) -> AppliedPart {
    let mut applied = AppliedPart { effect, hunks: 0, left_out: Vec::new(), edited: Vec::new() };
    for (path, change) in &shown.0 {
        let chosen: &[usize] = match selected.iter().find(|part| part.path() == path) {
            Some(FilePart::Text { .. }) => {
                applied.edited.push(path.clone());
                continue;
            }
            Some(FilePart::Hunks { hunks, .. }) => hunks,
            None => &[],
        };
        let count = change.hunks().len();
        applied.hunks += count;
        let left_out: Vec<_> = (1..=count).filter(|number| !chosen.contains(number)).collect();
        if !left_out.is_empty() {
            applied.left_out.push(LeftOutHunks { path: path.clone(), hunks: left_out });
        }
    }
    applied
}

/// Returns the text that tells the model which parts of its change were omitted or edited.
fn in_words(change: &Patch, shown: &FileChanges, selected: &[FilePart]) -> String {
    let mut words = Vec::new();
    for FileEffect { path, new, .. } in &change.files {
        let all = shown.0.get(path).map(FileChange::hunks).unwrap_or_default();
        match selected.iter().find(|part| part.path() == path) {
            Some(FilePart::Text { text, .. }) => {
                let wanted = new.as_ref().map(|new| new.bytes.as_slice()).unwrap_or_default();
                let differs = difference(wanted, text.as_bytes());
                words.push(format!(
                    "The user edited the new text of {path} before approving it. The difference from your text to \
                     the approved one:\n{differs}"
                ));
            }
            Some(FilePart::Hunks { hunks, .. }) if hunks.len() == all.len() => {}
            Some(FilePart::Hunks { hunks, .. }) => {
                let numbers = (1..).zip(&all).filter(|(number, _)| !hunks.contains(number));
                let left_out: String = numbers.map(|(_, hunk)| *hunk).collect();
                words.push(format!(
                    "The user approved {} of {} hunks of the change of {path}. Not approved, so do not expect it in \
                     the file:\n{}",
                    hunks.len(),
                    all.len(),
                    bounded(&left_out)
                ));
            }
            None => words.push(format!("The user did not approve the change of {path}.")),
        }
    }
    let end = |words: &String| words.strip_suffix('\n').unwrap_or(words).to_owned();
    words.iter().map(end).collect::<Vec<_>>().join("\n")
}

fn difference(wanted: &[u8], approved: &[u8]) -> String {
    let hunks = hunks(wanted, approved, Instant::now() + TIME);
    let text: Vec<u8> = hunks.into_iter().flat_map(|hunk| hunk.text).collect();
    bounded(&String::from_utf8_lossy(&text))
}

/// Cuts a text to at most [`MOST_TOLD`] bytes, at the end of a line.
fn bounded(text: &str) -> String {
    if text.len() <= MOST_TOLD {
        return text.to_owned();
    }
    let start = text.get(..text.floor_char_boundary(MOST_TOLD)).unwrap_or_default();
    let kept = start.rfind('\n').map_or(start, |end| &start[..=end]);
    let left = text[kept.len()..].lines().count();
    format!("{kept}(cut here, {left} more lines; read the file to see what it has)\n")
}

#[cfg(test)]
mod tests {
    use ipc::effect::FileState;
    use ipc::id::CallId;
    use ipc::path::WirePath;
    use ipc::rights::{Grant, Rights};
    use ipc::tool::{ToolCall, WriteFile};
    use protocol::approval::{ApprovalMode, AskKind, MOST_TEXT, ReviewDecision};

    use super::*;
    use crate::approval::{JudgedAnswer, Ruling, SubjectChange};
    use crate::judgement::{Ask, StandingRights};

    const OLD: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    const NEW: &str = "one\n2\n3\n4\n5\n6\n7\n8\nnine\n";

    fn change(path: &str, old: Option<&[u8]>, new: &str) -> SubjectChange {
        let tool = ToolCall::WriteFile(WriteFile { path: path.into(), content: new.to_owned() });
        let state = |bytes: &[u8]| FileState { bytes: bytes.to_vec(), mode: 0o644 };
        let (old, new) = (old.map(state), Some(state(new.as_bytes())));
        let file = FileEffect { path: path.into(), old, new, replacements: 0 };
        let effect = Effect::Patch(Patch { files: vec![file] });
        let proposal = Proposal::of_patch(&tool, effect, |file| Some(file.path.clone())).unwrap();
        SubjectChange { tool, proposal, grant: Grant::default() }
    }

    fn one() -> Subject {
        let SubjectChange { tool, proposal, .. } = change("/p/a", Some(OLD.as_bytes()), NEW);
        Subject::Effect { tool, proposal, denied: None }
    }

    fn two() -> Subject {
        let changes = [change("/p/a", Some(OLD.as_bytes()), NEW), change("/p/b", None, "b\n")];
        Subject::Changes((1..).map(CallId).zip(changes).collect())
    }

    fn hunks_of(path: &str, hunks: &[usize]) -> FilePart {
        FilePart::Hunks { path: path.into(), hunks: hunks.to_vec() }
    }

    fn text_of(path: &str, text: &str) -> FilePart {
        FilePart::Text { path: path.into(), text: text.to_owned() }
    }

    fn shown(subject: &Subject) -> FileChanges {
        let proposals = subject.proposals().unwrap();
        FileChanges(proposals.iter().flat_map(|one| one.changes.0.clone()).collect())
    }

    /// Returns an answer that selects `files`, from a front end that was shown `subject`.
    fn part(subject: &Subject, files: &[FilePart]) -> ChangePart {
        let digest = String::new();
        ChangePart::of(&subject.digest(), &shown(subject), files.to_vec())
            .unwrap_or(ChangePart { files: files.to_vec(), digest })
    }

    fn judged(subject: &Subject, part: ChangePart, digest: Option<String>) -> Result<SubjectPart, String> {
        let standing = StandingRights::new(Rights::default(), "/p".into(), None, ApprovalMode::Ask);
        let ask = Ask { kind: AskKind::Patch, grant: Grant::default() };
        let decision = ReviewDecision::ApprovedInPart { part };
        let answer = JudgedAnswer { kind: AskKind::Patch, decision, digest };
        answer.judge(&ask, subject, &standing, None).map(|ruling| match ruling {
            Ruling::InPart(part) => *part,
            other => panic!("{other:?}"),
        })
    }

    fn approved(subject: &Subject, files: &[FilePart]) -> Result<SubjectPart, String> {
        judged(subject, part(subject, files), Some(subject.digest().into_owned()))
    }

    fn new_text(part: &CallPart) -> String {
        let Effect::Patch(Patch { files }) = &*part.effect else { panic!() };
        let [FileEffect { new: Some(new), .. }] = files.as_slice() else { panic!() };
        String::from_utf8(new.bytes.clone()).unwrap()
    }

    #[test]
    fn the_effect_of_a_part_is_what_was_chosen_and_the_model_learns_the_rest() {
        let approved = approved(&one(), &[hunks_of("/p/a", &[2])]).unwrap();
        let [Some(part)] = approved.calls.as_slice() else { panic!() };
        assert_eq!(new_text(part), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
        assert_eq!(part.applied.effect, effect_digest(&part.effect).unwrap());
        assert_eq!(approved.applied.to_string(), "1 of 2 hunks");
        let left_out = vec![LeftOutHunks { path: "/p/a".into(), hunks: vec![1] }];
        assert_eq!(approved.applied.left_out, left_out);
        insta::assert_snapshot!(part.told.as_ref().unwrap(), @r"
        The user approved 1 of 2 hunks of the change of /p/a. Not approved, so do not expect it in the file:
        @@ -1,4 +1,4 @@
        -1
        +one
         2
         3
         4
        ");
    }

    #[test]
    fn an_edited_text_is_carried_out_and_the_model_learns_the_difference() {
        let mine = "one\n2\n3\n4\n5\n6\n7\n8\nNINE\n";
        let approved = approved(&one(), &[text_of("/p/a", mine)]).unwrap();
        let [Some(part)] = approved.calls.as_slice() else { panic!() };
        assert_eq!(new_text(part), mine);
        assert_eq!(approved.applied.to_string(), "the text was edited");
        insta::assert_snapshot!(part.told.as_ref().unwrap(), @r"
        The user edited the new text of /p/a before approving it. The difference from your text to the approved one:
        @@ -6,4 +6,4 @@
         6
         7
         8
        -nine
        +NINE
        ");
    }

    #[test]
    fn of_several_changes_one_may_be_left_out_and_one_be_whole() {
        let subject = two();
        let approved_b = approved(&subject, &[hunks_of("/p/b", &[1])]).unwrap();
        let [None, Some(whole)] = approved_b.calls.as_slice() else { panic!() };
        assert_eq!((whole.told.as_ref(), new_text(whole)), (None, "b\n".to_owned()));
        assert_eq!(approved_b.applied.to_string(), "1 of 3 hunks");
        let both = [hunks_of("/p/a", &[1]), text_of("/p/b", "B\n")];
        let approved_both = approved(&subject, &both).unwrap();
        assert!(approved_both.calls.iter().all(|part| part.as_ref().is_some_and(|part| part.told.is_some())));
        assert_eq!(approved_both.applied.to_string(), "1 of 2 hunks, and the text of 1 file was edited");
        let all = [hunks_of("/p/a", &[1, 2]), hunks_of("/p/b", &[1])];
        assert_eq!(approved(&subject, &all).unwrap_err(), "the part is the whole change");
        let nothing = approved(&subject, &[text_of("/p/a", OLD)]).unwrap_err();
        assert_eq!(nothing, "the part changes nothing");
    }

    #[test]
    fn an_answer_that_is_no_part_of_what_was_shown_approves_nothing() {
        let subject = one();
        let whole = || Some(subject.digest().into_owned());
        let right = part(&subject, &[hunks_of("/p/a", &[1])]);
        assert!(judged(&subject, right.clone(), whole()).is_ok());
        // The digest of the whole is missing, or another one.
        assert!(judged(&subject, right.clone(), None).is_err());
        assert!(judged(&subject, right.clone(), Some("00".repeat(32))).is_err());
        // The digest of the part belongs to another selection, another change, or nothing.
        let other = part(&subject, &[hunks_of("/p/a", &[2])]).digest;
        let elsewhere = part(&two(), &[hunks_of("/p/a", &[1])]).digest;
        for digest in [other, elsewhere, String::new(), right.digest.to_uppercase(), whole().unwrap()] {
            let forged = ChangePart { digest, ..right.clone() };
            let why = judged(&subject, forged, whole()).unwrap_err();
            assert_eq!(why, "the answer belongs to another part of the change: its digest differs");
        }
        let late = judged(&two(), right.clone(), whole()).unwrap_err();
        assert_eq!(late, "the answer belongs to another action: its digest differs");
        for (files, why) in [
            (vec![], "the part changes nothing"),
            (vec![hunks_of("/p/a", &[])], "the part of /p/a names no hunk"),
            (vec![hunks_of("/p/a", &[1, 2])], "the part is the whole change"),
            (vec![text_of("/p/a", NEW)], "the part is the whole change"),
            (vec![text_of("/p/a", OLD)], "the part changes nothing"),
            (vec![hunks_of("/p/a", &[3])], "the change of /p/a has no hunk 3"),
            (vec![hunks_of("/p/a", &[0])], "the change of /p/a has no hunk 0"),
            (
                vec![hunks_of("/p/a", &[1, 1])],
                "the part of /p/a does not name each hunk once, in ascending order",
            ),
            (
                vec![hunks_of("/etc/passwd", &[1])],
                "the part names /etc/passwd, which the change does not have",
            ),
            (vec![text_of("/etc/passwd", "x")], "the part names /etc/passwd, which the change does not have"),
            (
                vec![hunks_of("/p/a", &[1]), hunks_of("/p/a", &[2])],
                "the part does not name each file once, in the order of their paths",
            ),
            (vec![text_of("/p/a", "a\0")], "the text of /p/a contains a NUL byte"),
            (
                vec![text_of("/p/a", &"x".repeat(MOST_TEXT + 1))],
                "the text of /p/a is larger than 1048576 bytes",
            ),
        ] {
            let part = part(&subject, &files);
            assert_eq!(judged(&subject, part, whole()).unwrap_err(), why, "{files:.100?}");
        }
    }

    #[test]
    fn a_change_that_is_no_text_has_no_part() {
        let SubjectChange { tool, proposal, .. } = change("/p/a", Some(b"\xff\n"), NEW);
        let subject = Subject::Effect { tool, proposal, denied: None };
        assert_eq!(subject.texts(), None);
        let why = approved(&subject, &[text_of("/p/a", "x")]).unwrap_err();
        assert_eq!(why, "no part of this request can be approved");
        let mixed = [change("/p/a", Some(OLD.as_bytes()), NEW), change("/p/b", Some(b"\xff"), "b")];
        assert_eq!(Subject::Changes((1..).map(CallId).zip(mixed).collect()).texts(), None);
        assert_eq!(
            one().texts().unwrap()[&WirePath::from("/p/a")].with(|n| n == 0),
            "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
        );
    }

    #[test]
    fn the_model_is_told_no_more_than_a_bound() {
        let old = "a line\n".repeat(2000);
        let SubjectChange { tool, proposal, .. } = change("/p/a", Some(old.as_bytes()), NEW);
        let subject = Subject::Effect { tool, proposal, denied: None };
        let approved = approved(&subject, &[text_of("/p/a", &"é\n".repeat(9000))]).unwrap();
        let told = approved.calls[0].as_ref().unwrap().told.clone().unwrap();
        assert!(told.len() < MOST_TOLD + 300, "{}", told.len());
        assert!(told.contains("more lines; read the file to see what it has)"), "{told:.300}");
    }
}
