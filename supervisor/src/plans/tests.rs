use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use ipc::id::ConversationId;

use super::*;
use crate::directories::Directories;
use crate::plan::MOST_BYTES;

fn store() -> (tempfile::TempDir, Store) {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let directories = Directories { config: at("c"), state: at("s"), cache: at("k") };
    (place, Store::at(&directories))
}

fn made(store: &Store, text: &str) -> StoredPlan {
    store.create(Path::new("/p"), None, text).unwrap()
}

fn approved(store: &Store, plan: &StoredPlan) -> Result<StoredPlan, StoreError> {
    store.approve(plan, vec!["/p".into()], Switch::Off, ApprovedBy::CommandLine)
}

#[test]
fn plans_of_one_second_have_names_of_their_own_and_the_newest_comes_first() {
    let (_place, store) = store();
    let made: Vec<_> = (0..12).map(|count| made(&store, &count.to_string()).id.to_string()).collect();
    let mut listed: Vec<_> = store.list(None).unwrap().plans.iter().map(|plan| plan.id.to_string()).collect();
    listed.reverse();
    assert_eq!(listed, made);
    assert_eq!(store.find(Some(Path::new("/p")), None).unwrap().text, "11");
    assert!(matches!(store.find(Some(Path::new("/q")), None), Err(StoreError::None)));
    let found = |prefix: &str| store.find(None, Some(prefix));
    assert_eq!(found(&made[0]).unwrap().text, "0", "a whole name is not ambiguous");
    assert!(matches!(found("2"), Err(StoreError::Ambiguous { candidates, .. }) if candidates.len() == 12));
    assert!(matches!(found("x"), Err(StoreError::Unknown { candidates, .. }) if candidates.len() == 12));
}

#[test]
fn files_are_private() {
    let (_place, store) = store();
    let plan = made(&store, "a");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let record = plan.path.with_extension("json");
    assert_eq!((mode(&plan.path), mode(&record)), (0o600, 0o600));
    assert_eq!(mode(plan.path.parent().unwrap()), 0o700);
}

#[test]
fn an_approval_is_of_one_text() {
    let (_place, store) = store();
    let first = made(&store, "a");
    assert_eq!(first.state(), State::Draft);
    assert_eq!(approved(&store, &first).unwrap().state(), State::Approved);
    let second = store.write(&first.id, "b").unwrap();
    assert_eq!(second.state(), State::ApprovalVoid);
    assert!(second.record.approval_of(&second.digest).is_none());
    assert!(matches!(approved(&store, &first), Err(StoreError::Changed { .. })));
    assert_eq!(store.write(&first.id, "a").unwrap().state(), State::Approved);
    let session: ConversationId = serde_json::from_str("\"s\"").unwrap();
    assert_eq!(store.executed(&first.id, session, "done").unwrap().state(), State::Executed);
    let rejected = store.reject(&first.id, Some("no".into())).unwrap();
    assert_eq!(rejected.state(), State::Rejected);
    assert!(rejected.record.approval_of(&first.digest).is_none());
    assert_eq!(store.read(&first.id).unwrap(), rejected);
}

#[test]
fn a_file_that_is_not_ours_is_left_out_and_named() {
    let (place, store) = store();
    let good = made(&store, "good");
    let spoilt: [fn(&Path, &Path); 6] = [
        |_, record| fs::write(record, "{").unwrap(),
        |_, record| {
            let text = fs::read_to_string(record).unwrap();
            fs::write(record, text.replace("\"schema\": 1", "\"schema\": 1, \"more\": 1")).unwrap();
        },
        |_, record| {
            let text = fs::read_to_string(record).unwrap();
            fs::write(record, text.replace("\"schema\": 1", "\"schema\": 2")).unwrap();
        },
        |text, _| fs::write(text, vec![b'a'; MOST_BYTES + 1]).unwrap(),
        |text, _| fs::set_permissions(text, Permissions::from_mode(0o622)).unwrap(),
        |text, _| {
            let elsewhere = text.with_extension("elsewhere");
            fs::rename(text, &elsewhere).unwrap();
            symlink(elsewhere, text).unwrap();
        },
    ];
    for spoil in spoilt {
        let plan = made(&store, "bad");
        let record = plan.path.with_extension("json");
        spoil(&plan.path, &record);
        let listing = store.list(None).unwrap();
        assert_eq!(listing.plans.iter().map(|plan| &plan.id).collect::<Vec<_>>(), [&good.id]);
        let [error] = listing.left_out.as_slice() else { panic!("{:?}", listing.left_out) };
        assert!(error.to_string().contains(plan.id.as_str()), "{error}");
        fs::remove_file(&plan.path).unwrap();
    }
    assert!(place.path().join("s/plans").is_dir());
}

#[test]
fn a_name_is_digits_and_dashes() {
    for name in ["2026-11-25-054200", "2026-11-25-054200-2", "2026-11-25-054200-999999"] {
        assert_eq!(PlanId::parse(name).unwrap().as_str(), name);
    }
    for name in [
        "",
        "../../../../x/yz/abcdef",
        "2026-11-25-05420",
        "2026-11-25-054200-",
        "2026-11-25-054200/x",
        "2026-11-25-05420é",
    ] {
        assert_eq!(PlanId::parse(name), None, "{name}");
    }
}
