#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;

use ipc::confinement::Tier;
use tests::programs::Programs;
use tests::{Finished, User, World, skip, tier};

const LIST: &str = include_str!("../../../supervisor/boundary/src/policy/hidden.txt");

/// Suffixes of a hidden path: the path itself, or a file deep in it.
const FORMS: [&str; 2] = ["", "/deep/x"];

/// Command that prints the names of files that can be read.
const READ: &str = r#"for f; do [ "$(cat "$f" 2>&1)" != SECRET ] || echo "$f"; done"#;

/// Returns the paths of a section of `hidden.txt`. In patterns, a name replaces the `*`.
fn places(section: &str) -> Vec<String> {
    let mut current = "";
    let mut found = Vec::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            current = name.trim_end_matches(']');
        } else if let Some((place, _)) = line.split_once(" # ").filter(|_| current == section) {
            found.push(place.trim_end().replace('*', "x"));
        }
    }
    assert!(!found.is_empty(), "{section}");
    found
}

/// Returns the paths in a directory that are hidden, and similar ones that are not.
fn below(directory: &Path, section: &str, form: &str) -> (Vec<String>, Vec<String>) {
    let path = |place: &str| format!("{}/{place}{form}", directory.display());
    let (open, hidden): (Vec<_>, Vec<_>) =
        places(section).into_iter().partition(|place| place.starts_with('!'));
    let hidden = hidden.iter().map(|place| path(place)).collect();
    let open = open.iter().map(|place| path(place.trim_start_matches('!')));
    (hidden, open.chain([path("nothing-of-the-list")]).collect())
}

fn plant(world: &World, files: &[String]) {
    for file in files.iter().map(Path::new) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "SECRET").unwrap();
        for path in file.ancestors().take_while(|path| *path != world.root()) {
            world.give(path);
        }
    }
}

/// Returns those of the files that a command in the sandbox can read, in their order.
fn read_inside(world: &World, tier: Tier, files: &[String]) -> Vec<String> {
    let mut sandbox = world.sandbox(tier, &[], "sh");
    sandbox.env("XDG_RUNTIME_DIR", world.root().join("run")).args(["-c", READ, "sh"]).args(files);
    let done = Finished::of(&mut sandbox).expect(0);
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn no_place_in_a_home_or_a_runtime_directory_is_read() {
    for (case, form) in FORMS.into_iter().enumerate() {
        for (user, tier) in tier::share(case) {
            let world = World::new(user);
            let (mut hidden, mut open) = below(&world.home(), "home", form);
            let (in_runtime, beside) = below(&world.root().join("run"), "runtime", form);
            hidden.extend(in_runtime);
            open.extend(beside);
            let all = [hidden, open.clone()].concat();
            plant(&world, &all);
            let outside = Finished::of(world.command("sh").args(["-c", READ, "sh"]).args(&all)).expect(0);
            assert_eq!(outside.stdout.lines().collect::<Vec<_>>(), all, "unconfined each is read");
            assert_eq!(read_inside(&world, tier, &all), open, "{user:?} {tier}");
        }
    }
}

/// Script that mounts separate file systems, creates files in them, and executes `$RUN` as user `$ID`. Mount points
/// have the modes of the real ones.
const MACHINE: &str = r#"
set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay none -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for kept in proc sys dev; do mount --rbind "/$kept" "/mnt/root/$kept"; done
cd /mnt/root
pivot_root . mnt
umount -l /mnt
mount -t tmpfs none /run
mount -t tmpfs -o mode=1777 none /tmp
for place in $MOUNTED; do mount -t tmpfs -o mode=700 none "$place"; done
for file; do
    rm -rf "${file%/deep/x}" 2> /dev/null || true
    mkdir -p -m 755 "$(dirname "$file")"
    printf SECRET > "$file"
    chmod 644 "$file"
    case $file in /sys/*) ;; *) chmod go+rx "$(dirname "${file%/deep/x}")" ;; esac
done
cd "$PROJECT"
exec setpriv --reuid "$ID" --regid "$ID" --clear-groups $RUN sh -c "$READ" sh "$@"
"#;

/// Returns the files that `sh` can read on a machine that [`MACHINE`] sets up.
fn read_on_machine(world: &World, program: &[&str], mounted: &[String], files: &[String]) -> Vec<String> {
    let mut unshare = world.command("unshare");
    unshare.uid(0).gid(0).args(["--mount", "--propagation", "private", "--", "sh", "-c", MACHINE, "sh"]);
    unshare.args(files).env("ID", world.user().uid().to_string()).env("PROJECT", world.project());
    unshare.env("MOUNTED", mounted.join(" ")).env("READ", READ).env("RUN", program.join(" "));
    let done = Finished::of(&mut unshare).expect(0);
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn no_place_of_the_system_is_read() {
    if !User::Myself.is_capable() {
        skip!("only root can have a machine of its own");
    }
    let bailiwick = Programs::get().path("bailiwick").display().to_string();
    for (user, tier) in tier::everywhere() {
        for form in FORMS {
            let world = World::new(user);
            let of_root = |section| if user == User::Myself { places(section) } else { Vec::new() };
            let mut mounted = of_root("mounted");
            mounted.retain(|place| Path::new(place).is_dir());
            let inside_of_mounted = mounted.iter().map(|place| format!("{place}/deep/x"));
            let system = places("system").into_iter().chain(of_root("root"));
            let hidden: Vec<_> =
                system.map(|place| format!("{place}{form}")).chain(inside_of_mounted).collect();
            let open = "/etc/nothing-of-the-list".to_owned();
            let all = [hidden, vec![open.clone()]].concat();
            let outside = read_on_machine(&world, &[], &mounted, &all);
            assert_eq!(outside, all, "unconfined each is read: {user:?}");
            let sandbox = [&[bailiwick.as_str(), "sandbox"], tier::flags(tier), &["--"]].concat();
            assert_eq!(read_on_machine(&world, &sandbox, &mounted, &all), [open], "{user:?} {tier}");
        }
    }
}
