//! The victim's files.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use tests::probe::victim::{SECRET, keep_attribute};
use tests::{User, World};

/// Size of the hidden file in bytes. It is a secret: no other number in the test is equal to it.
pub(super) const SIZE: &str = "27182818284";

pub(super) type Snapshot = BTreeMap<PathBuf, String>;

const HOME: [&str; 8] = [
    ".config/git",
    ".config/autostart",
    ".config/systemd/user",
    ".config/fish",
    ".ssh",
    ".local/bin",
    ".cargo",
    ".vscode",
];

/// Creates all of the victim's files anew.
pub(super) fn fill(world: &World, outside: &Path, shared: &[PathBuf]) {
    for place in [outside, &world.home()] {
        let _ = fs::remove_dir_all(place);
    }
    for place in ["dir", "empty", "vault"] {
        fs::create_dir_all(outside.join(place)).unwrap();
    }
    for place in HOME {
        fs::create_dir_all(world.home().join(place)).unwrap();
    }
    for (name, content) in
        [("file", "kept"), ("dir/inner", "kept"), ("hidden", SECRET), ("vault/secret", SECRET)]
    {
        write(&outside.join(name), content);
    }
    for name in [".bashrc", ".gitconfig"] {
        write(&world.home().join(name), "kept\n");
    }
    for path in shared {
        write(path, "kept");
    }
    // A sparse file, which has its full size for readers.
    fs::File::create(outside.join("hidden-sized")).unwrap().set_len(SIZE.parse().unwrap()).unwrap();
    fs::write(outside.join("vault").join(SECRET), "").unwrap();
    symlink(SECRET, outside.join("vault/link")).unwrap();
    for name in ["file", "hidden", "vault/secret"] {
        let path = CString::new(outside.join(name).as_os_str().as_bytes()).unwrap();
        keep_attribute(&path).unwrap();
    }
    give_all(world, outside);
    give_all(world, &world.home());
    for path in shared {
        world.give(path);
    }
    if world.user() == User::Plain {
        leave_set_uid(outside);
    }
    prepare_project(world, outside);
}

/// Creates files in the project as the attacker, who may write there.
fn prepare_project(world: &World, outside: &Path) {
    for entry in fs::read_dir(world.project()).unwrap().flatten() {
        let path = entry.path();
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    let mine = world.project().join("mine");
    fs::write(&mine, "mine").unwrap();
    world.give(&mine);
    let place = world.project().join("place");
    fs::create_dir(&place).unwrap();
    world.give(&place);
    let links = [
        ("link", "file"),
        ("dirlink", "dir"),
        ("hiddenlink", "hidden"),
        ("vaultlink", "vault"),
        ("streamlink", "stream"),
        ("datagramlink", "datagram"),
    ];
    for (name, target) in links {
        symlink(outside.join(target), world.project().join(name)).unwrap();
    }
}

/// Creates a set-user-ID program of root's, and a file to which only that program gives access.
fn leave_set_uid(outside: &Path) {
    assert!(geteuid().is_root());
    let (program, file) = (outside.join("set-uid"), outside.join("of-root"));
    tests::programs::copy_program(Path::new("/bin/cat"), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    write(&file, SECRET);
}

fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn give_all(world: &World, root: &Path) {
    for path in below(root) {
        if !path.is_symlink() {
            world.give(&path);
        }
    }
}

fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        if !path.is_symlink() && path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.push(path);
    }
    found
}

/// Returns everything about these directory trees that an attacker could change, except access times.
pub(super) fn snapshot(roots: &[PathBuf]) -> Snapshot {
    let beside = |root: &PathBuf| PathBuf::from(format!("{}-new", root.display()));
    let all = roots.iter().flat_map(|root| below(root).into_iter().chain([beside(root)]));
    all.filter_map(|path| facts(&path).map(|facts| (path, facts))).collect()
}

fn facts(path: &Path) -> Option<String> {
    let meta = fs::symlink_metadata(path).ok()?;
    let small = meta.is_file() && meta.len() < 1 << 20;
    let content = if small { fs::read(path).unwrap_or_default() } else { vec![] };
    let content = String::from_utf8_lossy(&content).into_owned();
    let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
    Some(format!("{:?} {times:?} {content}", (meta.mode(), meta.uid(), meta.gid(), meta.nlink(), meta.len())))
}
