//! Compares this parser of git's configuration with git itself, on generated files that include each other.

#[cfg(test)]
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;

use super::config::parse;
use super::references::Search;

type FileSettings = Vec<(String, Option<Vec<u8>>)>;

fn line() -> impl Strategy<Value = String> {
    let plain = select(vec![
        "[core]",
        "[CORE]\n",
        "[a \"B c\"]\n",
        "[a \"q\\\"uo\\\\te\"]\n",
        "[a \"\\x\"]\n",
        "[a \"\"]\n",
        "[a.Dotted.Name]\n",
        "[remote \"é\"] url = x\n",
        "hooksPath = dev/hooks\n",
        "HooksPath = \"dev/hooks\" ; comment\n",
        "hookspath=dev\\\n/hooks\n",
        "\tk = \" spaced \"  end  \n",
        "k\n",
        "k-2 = a#b\n",
        "k = \"a # b\" c # d\n",
        "k = \\tx\\n\\b\\\\\n",
        "k = one \\\n    two \\\r\n three\r\n",
        "k = = =\n",
        "k =\n",
        "; comment \\\n",
        "# [core]\n",
        "\r\n",
        "\n",
        "  ",
        "[b]l = 1\n",
        "[include]\n",
        "path = \"\"\n",
    ]);
    let target = (0..FILES).prop_map(name);
    let section = select(vec![
        "[include]\n",
        "[Include]",
        "[includeIf \"gitdir:/\"]\n",
        "[includeIf \"gitdir/i:**\"]\n",
        "[includeIf \"onbranch:main\"]\n",
        "[includeIf \"onbranch:other\"]\n",
        "[includeIf \"hasconfig:remote.*.url:x\"]\n",
        "[includeIf \"nonsense\"]\n",
    ]);
    let include = (section, target, any::<bool>()).prop_map(|(section, name, quoted)| {
        if quoted {
            format!("{section}\tPath = \"{name}\" # x\n")
        } else {
            format!("{section} path={name}\n")
        }
    });
    prop_oneof![4 => plain.prop_map(str::to_owned), 1 => include]
}

const FILES: usize = 4;

fn name(number: usize) -> String {
    format!("f{number}")
}

fn text() -> impl Strategy<Value = String> {
    (any::<bool>(), proptest::collection::vec(line(), 0..12))
        .prop_map(|(mark, lines)| if mark { format!("\u{feff}{}", lines.concat()) } else { lines.concat() })
}

/// Returns the settings that git reads from each file. `None` if git rejects one of the files.
fn as_git_reads(project: &Path, top: &Path) -> Option<BTreeMap<PathBuf, FileSettings>> {
    let output = Command::new("git")
        .args(["config", "--list", "--show-origin", "-z", "--includes"])
        .current_dir(project)
        .env("GIT_CONFIG_GLOBAL", top)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let mut parts = output.stdout.split(|byte| *byte == 0);
    let mut read: BTreeMap<PathBuf, FileSettings> = BTreeMap::new();
    while let (Some(origin), Some(setting)) = (parts.next(), parts.next()) {
        let origin = String::from_utf8_lossy(origin);
        let Some(file) = origin.strip_prefix("file:") else { continue };
        let end = setting.iter().position(|byte| *byte == b'\n').unwrap_or(setting.len());
        let name = String::from_utf8_lossy(&setting[..end]).into_owned();
        let value = setting.get(end + 1..).map(<[u8]>::to_vec);
        read.entry(fs::canonicalize(project.join(file)).unwrap()).or_default().push((name, value));
    }
    output.status.success().then_some(read)
}

fn as_we_read(file: &Path) -> FileSettings {
    let entries = parse(&fs::read(file).unwrap()).unwrap_or_default();
    entries.into_iter().map(|entry| (entry.name(), entry.value)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// Tests that the search finds at least the files that git reads, and that the parser reads the same settings from
    /// them. The search also follows includes with unmet conditions.
    #[test]
    fn what_git_reads_of_files_we_read_too(texts in proptest::collection::vec(text(), FILES)) {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let project = place.join("project");
        fs::create_dir_all(project.join(".git/objects")).unwrap();
        fs::create_dir_all(project.join(".git/refs")).unwrap();
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for (number, text) in texts.iter().enumerate() {
            fs::write(place.join(name(number)), text).unwrap();
        }
        let top = place.join(name(0));
        let ours: BTreeSet<PathBuf> = Search::files_from(top.clone())
            .into_iter()
            .map(|path| fs::canonicalize(path).unwrap())
            .collect();
        for (file, settings) in as_git_reads(&project, &top).unwrap_or_default() {
            prop_assert!(ours.contains(&file), "{} is not read", file.display());
            // A file may be included more than once.
            let once = as_we_read(&file);
            prop_assert!(!once.is_empty() && settings.chunks(once.len()).all(|chunk| chunk == once), "{}: {settings:?}, {once:?}", file.display());
        }
    }
}
