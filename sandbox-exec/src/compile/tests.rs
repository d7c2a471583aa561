use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ipc::confinement::{FileIdentity, Tier};

use super::*;
use crate::tree::{Entry, Found, Identity};

/// File system described by lines: `d/` is a directory, `l@t` a symbolic link to `t`, `f=n` a file with inode n.
struct Listed {
    paths: BTreeSet<(PathBuf, char, u64)>,
    links: BTreeMap<PathBuf, PathBuf>,
    locked: Vec<PathBuf>,
}

impl Listed {
    fn new(lines: &str) -> Self {
        let mut listed = Self { paths: BTreeSet::new(), links: BTreeMap::new(), locked: vec![] };
        for (number, line) in lines.split_whitespace().enumerate() {
            let number = 1000 + number as u64;
            if let Some(directory) = line.strip_suffix("/!") {
                listed.locked.push(directory.into());
                listed.paths.insert((directory.into(), 'd', number));
            } else if let Some((link, target)) = line.split_once('@') {
                listed.links.insert(link.into(), target.into());
                listed.paths.insert((link.into(), 'l', number));
            } else if let Some((file, inode)) = line.split_once('=') {
                listed.paths.insert((file.into(), 'f', inode.parse().unwrap()));
            } else if line.len() > 1 && line.ends_with('/') {
                listed.paths.insert((line.trim_end_matches('/').into(), 'd', number));
            } else {
                listed.paths.insert((line.into(), if line == "/" { 'd' } else { 'f' }, number));
            }
        }
        listed
    }

    fn listed(&self, path: &Path) -> io::Result<&(PathBuf, char, u64)> {
        self.paths.iter().find(|(found, ..)| found == path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Tree for Listed {
    fn entries(&self, directory: &Path) -> io::Result<Rc<[Entry]>> {
        if self.listed(directory)?.1 != 'd' {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if self.locked.iter().any(|locked| locked == directory) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let children = self.paths.iter().filter(|(path, ..)| path.parent() == Some(directory));
        Ok(children
            .map(|(path, kind, inode)| Entry {
                name: path.file_name().unwrap().to_owned(),
                kind: match kind {
                    'd' => Kind::Directory,
                    'l' => Kind::Link,
                    _ => Kind::Other,
                },
                inode: *inode,
            })
            .collect())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        let (_, kind, inode) = self.listed(path)?;
        Ok(Identity { device: 1, inode: *inode, directory: *kind == 'd' })
    }

    fn find<'p>(&self, path: &'p Path) -> Found<'p> {
        let target = self.links.get(path).cloned();
        let path_found = target.map_or(path.into(), Into::into);
        Found { path: path_found, identity: self.identity(path).ok() }
    }
}

const TREE: &str = "/ /bin@usr/bin /dev/ /etc/ /etc/hosts /etc/shadow /home/ /home/me/ /home/me/.ssh/ /home/me/notes \
    /home/me/p/ /home/you/ /proc/ /sys/ /usr/ /usr/bin/ /tmp/";

fn rights(read: &[&str], hidden: &[&str], write: &[&str]) -> Rights {
    let paths = |paths: &[&str]| paths.iter().map(WirePath::from).collect();
    Rights { read: paths(read), hidden: paths(hidden), write: paths(write), ..Rights::default() }.normalised()
}

fn show(plan: &Plan) -> String {
    let line = |rule: &PathRule| {
        let letter = |access, letter| if rule.access.has(access) { letter } else { '-' };
        let flags = [
            letter(Access::LIST, 'l'),
            letter(Access::READ, 'r'),
            letter(Access::WRITE, 'w'),
            letter(Access::DEVICE, 'd'),
        ];
        let named = if rule.named { " named" } else { "" };
        format!("{} {}{named}", String::from_iter(flags), rule.path.display())
    };
    let devices = |rule: &&PathRule| !DEVICES.iter().any(|device| rule.path == Path::new(device));
    let mut rules: Vec<_> = plan.rules.iter().filter(devices).collect();
    rules.sort_by_key(|rule| &rule.path);
    rules.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn compiled(tree: &str, rights: &Rights) -> String {
    show(&compile(rights, None, &[], Tier::Floor, &Listed::new(tree)).unwrap())
}

#[test]
fn hidden_paths_are_left_out_and_everything_beside_them_is_granted() {
    let rights = rights(&["/"], &["/home/me/.ssh", "/etc/shadow"], &["/home/me/p", "/tmp"]);
    insta::assert_snapshot!(compiled(TREE, &rights), @r"
    l--- / named
    lr-- /etc/hosts
    lr-- /home/me/notes
    lrw- /home/me/p named
    lr-- /home/you
    lr-- /proc
    lr-- /sys
    lrw- /tmp named
    lr-- /usr
    ");
}

#[test]
fn a_root_without_exceptions_is_one_rule() {
    insta::assert_snapshot!(compiled(TREE, &rights(&["/usr"], &["/etc/shadow"], &[])), @"lr-- /usr named");
}

#[test]
fn what_does_not_exist_yet_is_hidden_at_its_nearest_ancestor() {
    let rights = rights(&["/home"], &["/home/me/.config/gh/hosts.yml"], &[]);
    insta::assert_snapshot!(compiled(TREE, &rights), @r"
    l--- /home named
    lr-- /home/me/.ssh
    lr-- /home/me/notes
    lr-- /home/me/p
    lr-- /home/you
    ");
}

#[test]
fn links_are_never_granted_and_hide_their_targets() {
    let tree = "/h/ /h/link@/h/secret /h/secret /h/other";
    insta::assert_snapshot!(compiled(tree, &rights(&["/h"], &["/h/link"], &[])), @r"
    l--- /h named
    lr-- /h/other
    ");
}

#[test]
fn another_name_of_a_hidden_file_is_left_out() {
    let tree = "/h/ /h/secret=7 /h/copy=7 /h/other=8";
    insta::assert_snapshot!(compiled(tree, &rights(&["/h"], &["/h/secret"], &[])), @r"
    l--- /h named
    lr-- /h/other
    ");
}

#[test]
fn a_hidden_file_in_a_write_root_leaves_the_root_writable_but_not_readable() {
    let tree = "/p/ /p/.env /p/src/ /p/src/deep";
    insta::assert_snapshot!(compiled(tree, &rights(&["/p"], &["/p/.env"], &["/p"])), @r"
    l-w- /p named
    lrw- /p/src
    ");
}

#[test]
fn a_directory_that_cannot_be_listed_grants_nothing_beneath_it() {
    let tree = "/h/ /h/root/! /h/root/.ssh /h/root/other /h/me/";
    insta::assert_snapshot!(compiled(tree, &rights(&["/h"], &["/h/root/.ssh"], &[])), @r"
    l--- /h named
    lr-- /h/me
    ");
}

#[test]
fn a_hidden_path_beneath_a_file_takes_nothing_from_the_file() {
    insta::assert_snapshot!(compiled("/h/ /h/f", &rights(&["/h"], &["/h/f/g"], &[])), @r"
    l--- /h named
    lr-- /h/f
    ");
}

#[test]
fn what_is_the_programs_own_is_granted_in_a_hidden_place_and_nothing_beside_it() {
    let own = WirePath::from("/t/own");
    let tree = Listed::new("/ /t/ /t/own/ /t/other/ /u/");
    let hidden = rights(&["/"], &["/t"], &["/t/own"]);
    insta::assert_snapshot!(show(&compile(&hidden, Some(&own), &[], Tier::Floor, &tree).unwrap()), @r"
    l--- / named
    lrw- /t/own named
    lr-- /u
    ");
    let error = compile(&hidden, None, &[], Tier::Floor, &tree).unwrap_err();
    assert_eq!(error.to_string(), "the root /t/own lies in /t, which is hidden");
    // In normal form a write root around both replaces it, and grants nothing outside it.
    let tree = Listed::new("/ /u/ /u/f /u/t/ /u/t/own/ /u/t/other/");
    let own = WirePath::from("/u/t/own");
    let rights = rights(&["/"], &["/u/t"], &["/u", "/u/t/own"]).normalised();
    assert_eq!(rights.write, ["/u".into()] as [WirePath; 1]);
    let plan = compile(&rights, Some(&own), &[], Tier::Floor, &tree).unwrap();
    let access =
        |path: &str| plan.rules.iter().find(|rule| rule.path == Path::new(path)).map(|rule| rule.access);
    assert_eq!((access("/u/t/own"), access("/u/f")), (Some(Access::ALL), Some(Access::ALL)));
    assert_eq!((access("/u/t"), access("/u/t/other")), (None, None));
    let nobodys = WirePath::from("/v/t/own");
    let plan = compile(&rights, Some(&nobodys), &[], Tier::Floor, &tree).unwrap();
    assert!(
        plan.rules.iter().all(|rule| rule.path != Path::new("/v/t/own")),
        "a place that no write root holds"
    );
}

#[test]
fn only_five_devices_are_granted_with_the_root() {
    let plan = compile(
        &rights(&["/"], &[], &[]),
        None,
        &[],
        Tier::Floor,
        &Listed::new("/ /dev/ /dev/sda /dev/pts/ /usr/"),
    )
    .unwrap();
    let devices: Vec<_> = plan.rules.iter().filter(|rule| rule.path.starts_with("/dev")).collect();
    let granted: BTreeSet<_> =
        devices.iter().filter(|rule| rule.access == Access::DEVICE).map(|rule| &rule.path).collect();
    assert_eq!(granted, DEVICES.map(PathBuf::from).iter().collect());
    assert_eq!(devices.len(), DEVICES.len());
}

#[test]
fn rights_that_cannot_be_held_are_refused() {
    let tree = Listed::new(TREE);
    let refusal = |rights: &Rights| compile(rights, None, &[], Tier::Floor, &tree).unwrap_err().to_string();
    for write in ["/", "/proc", "/proc/sys", "/sys/fs", "/dev"] {
        let message = refusal(&rights(&[], &[], &[write]));
        assert!(message.contains("/proc, /sys or /dev writable"), "{write}: {message}");
    }
    assert_eq!(
        refusal(&rights(&["/"], &["/home/me"], &["/home/me/p"])),
        "the root /home/me/p lies in /home/me, which is hidden"
    );
    for path in ["usr", "/a/../b", "/a/./b", "/a//b", "/a/", "//", ""] {
        let expected = format!("{path} is not an absolute path without `.`, `..` and empty parts");
        assert_eq!(refusal(&rights(&[path], &[], &[])), expected);
        assert_eq!(refusal(&rights(&["/usr"], &[path], &[])), expected, "hidden");
    }
    assert!(refusal(&rights(&["/nowhere"], &[], &[])).starts_with("cannot look at /nowhere: "));
}

#[test]
fn a_device_tree_may_be_granted_by_name() {
    let plan =
        compile(&rights(&[], &[], &["/dev/shm"]), None, &[], Tier::Floor, &Listed::new("/dev/shm/")).unwrap();
    assert_eq!(show(&plan), "lrw- /dev/shm named");
}

#[test]
fn what_was_hidden_when_the_session_began_stays_so_under_another_name() {
    let tree = Listed::new("/p/ /p/secret /p/other");
    let secret = tree.identity(Path::new("/p/other")).unwrap();
    let moved = [FileIdentity { device: secret.device, inode: secret.inode }];
    let plan = compile(&rights(&["/p"], &["/p/secret"], &["/p"]), None, &moved, Tier::Floor, &tree).unwrap();
    assert!(!plan.rules.iter().any(|rule| rule.path == Path::new("/p/other")), "{:?}", plan.rules);
    let plan = compile(&rights(&["/p"], &["/p/secret"], &["/p"]), None, &[], Tier::Floor, &tree).unwrap();
    assert!(plan.rules.iter().any(|rule| rule.path == Path::new("/p/other")), "{:?}", plan.rules);
}

#[test]
fn the_full_tier_has_devices_of_its_own() {
    let tree = Listed::new("/ /dev/ /dev/pts/ /dev/shm/ /dev/tty /usr/");
    let full = compile(&rights(&["/"], &[], &[]), None, &[], Tier::Full, &tree).unwrap();
    insta::assert_snapshot!(show(&full), @r"
    l--- / named
    lrw- /dev/mqueue
    l--d /dev/pts
    lrw- /dev/shm
    ---d /dev/tty
    lr-- /usr
    ");
    let within = |devices| {
        let plan = Plan::within(&["/".into()], &[], Network::Off, Tier::Full, devices);
        plan.rules.iter().any(|rule| rule.path == Path::new("/dev/shm"))
    };
    assert!(
        within(Devices::Own) && !within(Devices::Harmless),
        "a command that reads shares no memory with a writer"
    );
}

#[test]
fn the_number_of_rules_is_bounded() {
    let hidden = ["/d0/secret", "/d1/secret", "/d2/secret"];
    let tree = Many { listed: Cell::new(0), answer: || Ok(MAX_RULES) };
    let error = compile(&rights(&["/"], &hidden, &[]), None, &[], Tier::Full, &tree).unwrap_err();
    assert!(matches!(error, CompileError::TooManyRules), "{error}");
    assert_eq!(tree.listed.get(), 2, "the root and the first directory: none after that");
    let tree = Many { listed: Cell::new(0), answer: || Err(io::ErrorKind::FileTooLarge.into()) };
    let error = compile(&rights(&["/"], &hidden, &[]), None, &[], Tier::Full, &tree).unwrap_err();
    assert!(matches!(error, CompileError::TooManyRules), "{error}");
}

struct Many {
    listed: Cell<usize>,
    answer: fn() -> io::Result<usize>,
}

impl Tree for Many {
    fn entries(&self, directory: &Path) -> io::Result<Rc<[Entry]>> {
        self.listed.set(self.listed.get() + 1);
        let is_root = directory == Path::new("/");
        let (letter, kind) = if is_root { ("d", Kind::Directory) } else { ("f", Kind::Other) };
        let entry = |number| Entry { name: format!("{letter}{number}").into(), kind, inode: 1 };
        let count = if is_root { 3 } else { (self.answer)()? };
        Ok((0..count).map(entry).collect())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        Ok(Identity { device: 1, inode: 2, directory: path == Path::new("/") })
    }

    fn find<'p>(&self, path: &'p Path) -> Found<'p> {
        Found { path: path.into(), identity: self.identity(path).ok() }
    }
}
