use ipc::confinement::Confinement;
use nix::fcntl::{AT_FDCWD, renameat};
use nix::sys::stat::{Mode, mkdirat};

use super::*;

struct World {
    _place: tempfile::TempDir,
    root: PathBuf,
    followed: HiddenInodes,
}

impl World {
    fn new(hidden: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        for directory in ["secret/deep", "a/b", "beside"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["secret/deep/key", "a/b/key", ".env", "beside/code"] {
            fs::write(root.join(file), file).unwrap();
        }
        let followed = HiddenInodes::of(&rights(&root, hidden, &["."]), None).unwrap();
        Self { _place: place, root, followed }
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.root.join(from), self.root.join(to)).unwrap();
    }

    fn hidden(&mut self, hidden: &[&str], write: &[&str]) -> Vec<String> {
        let mut confinement = confinement(rights(&self.root, hidden, write));
        self.followed.follow(&mut confinement).unwrap();
        assert!(!confinement.hidden_files.is_empty());
        let name = |path: &WirePath| path.as_path().strip_prefix(&self.root).unwrap().display().to_string();
        confinement.rights.hidden.iter().map(name).collect()
    }
}

fn rights(root: &Path, hidden: &[&str], write: &[&str]) -> Rights {
    let paths = |names: &[&str]| {
        names.iter().map(|name| WirePath::from(&root.join(name).components().collect::<PathBuf>())).collect()
    };
    Rights { read: vec!["/".into()], hidden: paths(hidden), write: paths(write), ..Rights::default() }
}

fn confinement(rights: Rights) -> Confinement {
    Confinement::new(rights, "/p".into())
}

#[test]
fn what_stays_is_hidden_by_its_name() {
    let mut world = World::new(&["secret", ".env"]);
    assert_eq!(world.hidden(&["secret", ".env"], &["."]), [".env", "secret"]);
}

#[test]
fn what_moved_with_its_parent_is_found() {
    let mut world = World::new(&["a/b/key"]);
    world.rename("a", "c");
    world.rename("c/b", "beside/d");
    assert_eq!(world.hidden(&["a/b/key"], &["."]), ["a/b/key", "beside/d/key"]);
}

#[test]
fn who_may_not_write_does_not_see_it_either() {
    let mut world = World::new(&[".env"]);
    world.rename(".env", "beside/e");
    assert_eq!(world.hidden(&[".env"], &[]), [".env", "beside/e"]);
}

#[test]
fn what_was_taken_out_of_a_hidden_directory_is_found() {
    let mut world = World::new(&["secret"]);
    world.rename("secret/deep/key", "beside/k");
    world.rename("secret/deep", "beside/d");
    assert_eq!(world.hidden(&["secret"], &["."]), ["beside/d", "beside/k", "secret"]);
}

#[test]
fn other_names_are_found_from_the_first_start_on() {
    let mut world = World::new(&[".env"]);
    fs::hard_link(world.root.join(".env"), world.root.join("a/b/twin")).unwrap();
    assert_eq!(world.hidden(&[".env"], &["."]), [".env", "a/b/twin"]);
}

#[test]
fn what_a_link_led_to_stays_hidden_when_it_leads_elsewhere() {
    let mut world = World::new(&[]);
    let link = world.root.join("link");
    std::os::unix::fs::symlink("a/b", &link).unwrap();
    assert_eq!(world.hidden(&["link"], &["."]), ["a/b", "link"]);
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("beside", &link).unwrap();
    world.rename("a/b", "c");
    assert_eq!(world.hidden(&["link"], &["."]), ["a/b", "beside", "c", "link"]);
}

#[test]
fn what_a_new_write_root_hides_is_followed_from_then_on() {
    let mut world = World::new(&[".env"]);
    let mut other = HiddenInodes::of(&rights(&world.root, &["a/b/key"], &["beside"]), None).unwrap();
    assert!(other.known.is_empty());
    mem::swap(&mut world.followed, &mut other);
    assert_eq!(world.hidden(&["a/b/key"], &["a"]), ["a/b/key"]);
    world.rename("a/b", "a/c");
    assert_eq!(world.hidden(&["a/b/key"], &["beside"]), ["a/b/key", "a/c/key"]);
}

/// Tests a directory in which so many names are hidden that it is listed once, instead of a look-up for each name.
#[test]
fn of_many_names_in_one_directory_those_that_are_there_are_followed() {
    let names: Vec<_> = (0..40).map(|number| format!("n{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut world = World::new(&[]);
    fs::write(world.root.join("n3"), "").unwrap();
    std::os::unix::fs::symlink("a/b", world.root.join("n5")).unwrap();
    let with = |more: &[&str]| {
        let mut all: Vec<_> = names.iter().chain(more).map(|name| (*name).to_owned()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(world.hidden(&names, &["."]), with(&["a/b"]));
    world.rename("n3", "beside/k");
    world.rename("a/b", "c");
    assert_eq!(world.hidden(&names, &["."]), with(&["a/b", "beside/k", "c"]));
}

/// Tests with a directory whose path is too long for the kernel, so that the directory cannot be read.
#[test]
fn what_cannot_be_looked_into_is_hidden() {
    let mut world = World::new(&[".env"]);
    let name = "n".repeat(250);
    let mut deep = world.root.join("beside");
    while deep.as_os_str().len() + name.len() + 2 < 4096 {
        deep.push(&name);
        fs::create_dir(&deep).unwrap();
    }
    let place = fs::File::open(&deep).unwrap();
    mkdirat(&place, name.as_str(), Mode::S_IRWXU).unwrap();
    renameat(AT_FDCWD, &world.root.join(".env"), &place, format!("{name}/e").as_str()).unwrap();
    let hidden = world.hidden(&[".env"], &["."]);
    assert_eq!(hidden.len(), 2);
    assert!(deep.join(&name).starts_with(world.root.join(&hidden[1])), "{hidden:?}");
}
