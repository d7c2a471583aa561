//! Tests denials of POSIX shared memory and semaphores in the floor tier. The error of a program has the library's name
//! for the object, such as `/psm_…`, or no name. The denial names the file in `/dev/shm`.

use ipc::confinement::Tier;
use serde_json::json;
use tests::Finished;
use tests::World;
use tests::tier::everywhere;

use crate::denials::told::{command, tell};

/// Commands that need shared memory or a semaphore. Their error messages have the library's name for the object, a name
/// that the command chose, or none.
const NEED_MEMORY: &[&str] = &[
    "python3 -c 'from multiprocessing.shared_memory import SharedMemory as S; S(create=True, size=8).unlink()'",
    "python3 -c 'from multiprocessing.shared_memory import SharedMemory as S; S(\"bw-seg\", True, 8).unlink()'",
    "python3 -c 'import multiprocessing; multiprocessing.Lock()'",
    "python3 -c 'import multiprocessing; multiprocessing.Queue()'",
    "touch /dev/shm/bw-new && rm /dev/shm/bw-new",
];

/// Commands that print error messages like those of [`NEED_MEMORY`], but that use no shared memory.
const OTHERS: &[&str] = &[
    "echo \"tool: cannot open '/psm': Permission denied\"; exit 1",
    "echo 'SemLock(: Permission denied'; exit 1",
];

#[test]
fn shared_memory_is_named_where_it_lies_and_its_grant_helps() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let asked: Vec<_> = NEED_MEMORY.iter().map(|line| command(line)).collect();
        let granted = ["--mode", "auto", "--write", "/dev/shm"];
        let told = tell(&world, tier, &granted[..2], &asked);
        let helped = tell(&world, tier, &granted, &asked);
        for ((line, told), helped) in NEED_MEMORY.iter().zip(told).zip(helped) {
            // Control: without the sandbox, the command succeeds.
            Finished::of(world.command("bash").args(["-c", line])).expect(0);
            assert!(!helped.failed && helped.denials.is_empty(), "{user:?} {tier}: {line}: {helped:?}");
            if tier == Tier::Full {
                assert!(!told.failed && told.denials.is_empty(), "it has its own: {line}: {told:?}");
                continue;
            }
            let [denied] = told.denials.as_slice() else { panic!("{user:?}: {line}: {told:?}") };
            assert_eq!(denied["grant"], json!("--write /dev/shm"), "{user:?}: {line}: {told:?}");
            assert_eq!(
                (&denied["grade"], &denied["layer"]),
                (&json!("proved"), &json!("landlock")),
                "{line}"
            );
            let object = denied["object"]["path"].as_str().unwrap();
            assert!(object.starts_with("/dev/shm"), "{user:?}: {line}: {told:?}");
        }
    }
}

#[test]
fn sandbox_names_shared_memory_where_it_lies() {
    for (user, tier) in everywhere().into_iter().filter(|(_, tier)| *tier == Tier::Floor) {
        let world = World::new(user);
        for line in NEED_MEMORY {
            let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", line])).expect(1);
            assert!(
                done.stderr.contains("  hint: --write /dev/shm allows it\n"),
                "{user:?}: {line}: {}",
                done.stderr
            );
        }
    }
}

#[test]
fn a_name_that_looks_alike_is_no_shared_memory() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let asked: Vec<_> = OTHERS.iter().map(|line| command(line)).collect();
        for told in tell(&world, tier, &["--mode", "auto"], &asked) {
            assert!(!told.content.contains("/dev/shm"), "{user:?} {tier}: {told:?}");
        }
    }
}
