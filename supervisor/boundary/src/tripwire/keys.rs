//! Allowlist of git configuration keys that an agent may change. None of them names a program, a file, an include, a
//! transport, or a rewrite of addresses.

use std::path::Path;

use super::addresses::Address;
use super::config::GitConfigEntry;

/// Keys `section.key` that an agent may set to any value.
const PLAIN: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
            "protecthfs",
            "protectntfs",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
            "commentchar",
            "commentstring",
            "compression",
            "longpaths",
            "sparsecheckout",
            "sparsecheckoutcone",
            "untrackedcache",
            "whitespace",
        ],
    ),
    (
        "extensions",
        &[
            "objectformat",
            "compatobjectformat",
            "refstorage",
            "worktreeconfig",
            "relativeworktrees",
            "noop",
            "partialclone",
        ],
    ),
    ("user", &["name", "email", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff"]),
    ("fetch", &["prune", "prunetags", "parallel"]),
    ("merge", &["ff", "conflictstyle", "renames", "stat"]),
    ("rebase", &["autostash", "autosquash", "updaterefs"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards", "denydeletes"]),
    ("uploadpack", &["allowfilter", "allowanysha1inwant", "allowreachablesha1inwant", "allowtipsha1inwant"]),
    ("gc", &["auto", "autodetach"]),
    ("maintenance", &["auto"]),
    ("color", &["ui"]),
    ("index", &["sparse", "version", "threads", "skiphash"]),
    ("submodule", &["active", "recurse"]),
    ("lfs", &["repositoryformatversion"]),
];

#[derive(Clone, Copy)]
enum Test {
    Value(fn(&[u8]) -> bool),
    Address,
}

/// Keys `section.key` that an agent may set to certain values, each with the test that a value must pass.
const BY_VALUE: &[(&str, &str, Test)] =
    &[("commit", "gpgsign", Test::Value(is_off)), ("tag", "gpgsign", Test::Value(is_off))];

/// Keys `section.*.key` that an agent may set to certain values, each with the test that a value must pass.
const BY_SUBSECTION: &[(&str, &str, Test)] = &[
    ("remote", "url", Test::Address),
    ("remote", "pushurl", Test::Address),
    ("remote", "fetch", Test::Value(any)),
    ("remote", "prune", Test::Value(any)),
    ("remote", "promisor", Test::Value(any)),
    ("remote", "partialclonefilter", Test::Value(any)),
    ("remote", "tagopt", Test::Value(is_tag_option)),
    ("branch", "remote", Test::Address),
    ("branch", "pushremote", Test::Address),
    ("branch", "merge", Test::Value(any)),
    ("branch", "rebase", Test::Value(any)),
    ("branch", "description", Test::Value(any)),
    ("submodule", "url", Test::Address),
    ("submodule", "branch", Test::Value(any)),
    ("submodule", "active", Test::Value(any)),
    ("submodule", "ignore", Test::Value(any)),
    ("submodule", "shallow", Test::Value(any)),
    ("submodule", "fetchrecursesubmodules", Test::Value(any)),
    ("submodule", "update", Test::Value(is_update)),
];

pub(super) trait KeyPlaces {
    /// True if `core.worktree` may have this value in the configuration file.
    fn worktree_leads_back(&self, value: &[u8]) -> bool;

    /// True if a remote may be at this local path in the configuration file.
    fn may_be_remote(&self, path: &Path) -> bool;
}

/// True if an agent may set, change or remove this configuration entry.
pub(super) fn is_harmless(entry: &GitConfigEntry, places: &impl KeyPlaces) -> bool {
    let (section, subsection, key, value) = entry.meaning();
    let value = value.unwrap_or(b"true");
    if subsection.is_some() {
        return decided(BY_SUBSECTION, section, key, value, places);
    }
    if (section, key) == (b"core", b"worktree") {
        return places.worktree_leads_back(value);
    }
    let plain = PLAIN
        .iter()
        .any(|(name, keys)| name.as_bytes() == section && keys.iter().any(|known| known.as_bytes() == key));
    plain || section == b"advice" || decided(BY_VALUE, section, key, value, places)
}

fn decided(
    table: &[(&str, &str, Test)],
    section: &[u8],
    key: &[u8],
    value: &[u8],
    places: &impl KeyPlaces,
) -> bool {
    let found = table.iter().find(|(a, b, _)| (a.as_bytes(), b.as_bytes()) == (section, key));
    found.is_some_and(|(_, _, test)| match test {
        Test::Value(test) => test(value),
        Test::Address => match Address::of(value) {
            Address::Remote => true,
            Address::Local(path) => places.may_be_remote(&path),
            Address::Strange => false,
        },
    })
}

fn any(_: &[u8]) -> bool {
    true
}

pub(super) fn is_off(value: &[u8]) -> bool {
    ["false", "no", "off", "0", ""].iter().any(|off| value.eq_ignore_ascii_case(off.as_bytes()))
}

fn is_tag_option(value: &[u8]) -> bool {
    [&b"--tags"[..], b"--no-tags"].contains(&value)
}

/// True for values of `submodule.*.update` that run no command, unlike `!command`.
fn is_update(value: &[u8]) -> bool {
    [&b"checkout"[..], b"rebase", b"merge", b"none"].contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tripwire::config::parse;

    struct Project;

    impl KeyPlaces for Project {
        fn worktree_leads_back(&self, value: &[u8]) -> bool {
            value == b"../../../sub"
        }

        fn may_be_remote(&self, path: &Path) -> bool {
            !path.starts_with("/cache")
                && !path.components().rev().skip(1).any(|step| step.as_os_str() == ".git")
        }
    }

    fn harmless(text: &str) -> bool {
        parse(text.as_bytes()).unwrap().iter().all(|entry| is_harmless(entry, &Project))
    }

    #[test]
    fn what_git_itself_writes_is_harmless() {
        for text in [
            "[core]\nrepositoryformatversion = 0\nfilemode = true\nbare = false\nlogallrefupdates = true\n",
            "[remote \"origin\"]\nurl = https://example.org/a.git\nfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[remote \"o\"]\nurl = git@example.org:a/b.git\nurl = /srv/a.git\nurl = ../a\nurl = ../a/.git/\nurl = ssh://h/a\n",
            "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main\nrebase = true\n",
            "[user]\nname = a\nemail = b\n[init]\ndefaultBranch = main\n",
            "[submodule \"x\"]\nactive = true\nurl = https://example.org/x\nupdate = rebase\n",
            "[core]\nworktree = ../../../sub\n",
            "[extensions]\nworktreeConfig = true\n[commit]\ngpgsign = false\n[advice]\ndetachedHead = false\n",
        ] {
            assert!(harmless(text), "{text}");
        }
    }

    #[test]
    fn what_names_a_program_a_path_or_a_rewrite_is_not() {
        for text in [
            "[core]\nhooksPath = x",
            "[core]\nfsmonitor",
            "[core]\nsshCommand = x",
            "[core]\neditor = x",
            "[core]\npager = x",
            "[core]\naskPass = x",
            "[core]\ngitProxy = x",
            "[core]\nworktree = /home/me",
            "[core]\nexcludesFile = x",
            "[core]\nattributesFile = x",
            "[core]\nalternateRefsCommand = x",
            "[core \"x\"]\nbare = true",
            "[filter \"x\"]\nclean = x",
            "[diff \"x\"]\ntextconv = x",
            "[diff]\nexternal = x",
            "[merge \"x\"]\ndriver = x",
            "[mergetool \"x\"]\ncmd = x",
            "[alias]\nst = !x",
            "[credential]\nhelper = x",
            "[credential \"https://x\"]\nhelper = x",
            "[include]\npath = x",
            "[includeIf \"gitdir:x\"]\npath = x",
            "[url \"x\"]\ninsteadOf = y",
            "[protocol \"ext\"]\nallow = always",
            "[protocol]\nallow = always",
            "[remote \"o\"]\nvcs = x",
            "[remote \"o\"]\nmirror = true",
            "[remote \"o\"]\nmirror = false",
            "[remote \"o\"]\npush = refs/heads/*:refs/heads/*",
            "[remote]\npushDefault = o",
            "[push]\ndefault = matching",
            "[push]\nfollowTags = true",
            "[push]\nautoSetupRemote = true",
            "[push]\npushOption = x",
            "[url \"x\"]\npushInsteadOf = y",
            "[remote \"o\"]\nserverOption = x",
            "[remote \"o\"]\nproxyAuthMethod = basic",
            "[remote \"o\"]\nfollowRemoteHEAD = always",
            "[remote \"o\"]\nskipFetchAll = true",
            "[remotes]\ndefault = o",
            "[checkout]\ndefaultRemote = o",
            "[clone]\ndefaultRemoteName = o",
            "[http \"https://x\"]\nproxy = x",
            "[http]\nsslVerify = false",
            "[ssh]\nvariant = simple",
            "[fetch]\nbundleURI = https://x",
            "[bundle \"x\"]\nuri = https://x",
            "[remote \"o\"]\nreceivepack = x",
            "[remote \"o\"]\nuploadpack = x",
            "[remote \"o\"]\nproxy = x",
            "[remote \"o\"]\nurl = ext::sh -c x",
            "[remote \"o\"]\nurl = -oProxyCommand=x",
            "[remote \"o\"]\nurl = ssh://-oProxyCommand=x/y",
            "[remote \"o\"]\nurl = fd::7",
            "[remote \"o\"]\nurl = odd://x",
            "[remote \"o\"]\nurl = .git/evil",
            "[remote \"o\"]\nurl = file:///p/.git/./objects/evil",
            "[remote \"o\"]\nurl = file:///p/%2egit/objects/evil",
            "[remote \"o\"]\npushurl = /cache/evil",
            "[branch \"b\"]\npushremote = /cache/evil",
            "[submodule \"x\"]\nurl = file:///cache/evil",
            "[remote \"o\"]\ntagOpt = --upload-pack=x",
            "[branch \"b\"]\nremote = ext::sh",
            "[submodule \"x\"]\nupdate = !x",
            "[submodule \"x\"]\nurl = ext::sh",
            "[gpg]\nprogram = x",
            "[gpg \"ssh\"]\nprogram = x",
            "[commit]\ngpgsign = true",
            "[uploadpack]\npackObjectsHook = x",
            "[sequence]\neditor = x",
            "[web]\nbrowser = x",
            "[browser \"x\"]\ncmd = x",
            "[http]\nproxy = x",
            "[http]\nsslCert = x",
            "[pager]\nlog = x",
            "[interactive]\ndiffFilter = x",
            "[sendemail]\nsmtpServer = x",
            "[trailer \"x\"]\ncmd = x",
            "[unknown]\nkey = x",
        ] {
            assert!(!harmless(text), "{text}");
        }
    }
}
