//! Which keys of a git configuration an agent may change: an allowlist, so that what is unknown is not allowed.
//!
//! What names a program, a file, an include, a rewrite of addresses or a transport is not in it.

use super::config::Entry;

/// `section.key` without a subsection, whatever the value.
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
        &["objectformat", "compatobjectformat", "refstorage", "worktreeconfig", "relativeworktrees", "noop"],
    ),
    ("user", &["name", "email", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote", "followtags"]),
    ("fetch", &["prune", "prunetags", "parallel"]),
    ("merge", &["ff", "conflictstyle", "renames", "stat"]),
    ("rebase", &["autostash", "autosquash", "updaterefs"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards", "denydeletes"]),
    ("gc", &["auto", "autodetach"]),
    ("maintenance", &["auto"]),
    ("color", &["ui"]),
    ("index", &["sparse", "version", "threads", "skiphash"]),
    ("submodule", &["active", "recurse"]),
    ("lfs", &["repositoryformatversion"]),
];

/// Keys whose value decides.
type Test = fn(&[u8]) -> bool;

/// `section.key` without a subsection, by value.
const BY_VALUE: &[(&str, &str, Test)] = &[("commit", "gpgsign", is_off), ("tag", "gpgsign", is_off)];

/// `section.*.key`, by value.
const BY_SUBSECTION: &[(&str, &str, Test)] = &[
    ("remote", "url", is_plain_address),
    ("remote", "pushurl", is_plain_address),
    ("remote", "fetch", any),
    ("remote", "push", any),
    ("remote", "mirror", any),
    ("remote", "prune", any),
    ("remote", "tagopt", is_tag_option),
    ("branch", "remote", is_plain_address),
    ("branch", "pushremote", is_plain_address),
    ("branch", "merge", any),
    ("branch", "rebase", any),
    ("branch", "description", any),
    ("submodule", "url", is_plain_address),
    ("submodule", "branch", any),
    ("submodule", "active", any),
    ("submodule", "ignore", any),
    ("submodule", "shallow", any),
    ("submodule", "fetchrecursesubmodules", any),
    ("submodule", "update", is_update),
];

/// Whether an agent may set, change or remove this entry. `worktree_leads_back` says whether a `core.worktree` of this
/// file may say so.
pub(super) fn is_harmless(entry: &Entry, worktree_leads_back: impl FnOnce(&[u8]) -> bool) -> bool {
    let (section, subsection, key, value) = entry.meaning();
    let value = value.unwrap_or(b"true");
    if subsection.is_some() {
        return decided(BY_SUBSECTION, section, key, value);
    }
    if (section, key) == (b"core", b"worktree") {
        return worktree_leads_back(value);
    }
    let plain = PLAIN
        .iter()
        .any(|(name, keys)| name.as_bytes() == section && keys.iter().any(|known| known.as_bytes() == key));
    plain || section == b"advice" || decided(BY_VALUE, section, key, value)
}

fn decided(table: &[(&str, &str, Test)], section: &[u8], key: &[u8], value: &[u8]) -> bool {
    table.iter().any(|(a, b, test)| (a.as_bytes(), b.as_bytes()) == (section, key) && test(value))
}

fn any(_: &[u8]) -> bool {
    true
}

fn is_off(value: &[u8]) -> bool {
    ["false", "no", "off", "0", ""].iter().any(|off| value.eq_ignore_ascii_case(off.as_bytes()))
}

fn is_tag_option(value: &[u8]) -> bool {
    [&b"--tags"[..], b"--no-tags"].contains(&value)
}

/// `!command` runs a command.
fn is_update(value: &[u8]) -> bool {
    [&b"checkout"[..], b"rebase", b"merge", b"none"].contains(&value)
}

/// An address of a well-known transport, a path, or a remote's name: no `helper::address`, which runs
/// git-remote-helper, nothing that a program could take for an option, and nothing below a git directory, where a push
/// would run the hooks of a repository that nobody sees.
fn is_plain_address(value: &[u8]) -> bool {
    const SCHEMES: &[&[u8]] = &[b"https", b"http", b"ssh", b"git", b"file", b"git+ssh", b"ssh+git"];
    if value.first().is_none_or(|first| *first == b'-') || value.iter().any(u8::is_ascii_control) {
        return false;
    }
    let mut steps = value.split(|byte| *byte == b'/').filter(|step| !step.is_empty());
    if steps.any(|step| step == b".git") && steps.next().is_some() {
        return false;
    }
    let contains = |needle: &[u8]| value.windows(needle.len()).position(|window| window == needle);
    if contains(b"::")
        .is_some_and(|at| value[..at].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-'))
    {
        return false;
    }
    match contains(b"://") {
        Some(at) => {
            let host = value[at + 3..].first();
            SCHEMES.contains(&value[..at].to_ascii_lowercase().as_slice()) && host != Some(&b'-')
        }
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tripwire::config::parse;

    fn harmless(text: &str) -> bool {
        parse(text.as_bytes())
            .unwrap()
            .iter()
            .all(|entry| is_harmless(entry, |value| value == b"../../../sub"))
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
