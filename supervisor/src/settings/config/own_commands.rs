//! The person's own commands, in `commands/NAME.md` next to the settings, and those of a project in
//! `.bailiwick/commands`. A project's commands are untrusted: each file is ignored until the person has trusted exactly
//! its content.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use boundary::tripwire::beneath;
use nix::errno::Errno;
use protocol::own_command::OwnCommand;

use super::trust::FileDigest;
use super::user_file::own_text;
use crate::process::directories::Directories;

/// Directory of the person's commands, below the configuration directory.
const OWN: &str = "commands";

/// Directories that lead to a project's commands. The second is inside the first.
const DIRECTORIES: [&str; 2] = [".bailiwick", "commands"];

/// Maximum size in bytes of a command's file.
const MOST: usize = 64 << 10;

/// Maximum number of commands in a directory.
const MOST_COMMANDS: usize = 100;

/// Maximum number of file names that are read in a directory.
const MOST_NAMES: usize = 1000;

/// Maximum number of characters of a description.
const LONGEST_DESCRIPTION: usize = 200;

const LONGEST_NAME: usize = 40;

/// Line before and after the fields at the beginning of a command's file.
const FENCE: &str = "---";

#[derive(Clone, Debug)]
pub(super) struct CommandFile {
    pub(super) path: PathBuf,
    /// The command with the digest of its file; the error says why it cannot be used.
    pub(super) command: Result<(OwnCommand, FileDigest), String>,
}

#[derive(Debug, Default)]
pub(super) struct CommandFiles {
    pub(super) files: Vec<CommandFile>,
    /// The reason why some or all files of the directory are ignored; `None` if all are read.
    pub(super) ignored: Option<String>,
}

pub(super) fn place() -> PathBuf {
    DIRECTORIES.iter().collect()
}

/// Reads the commands of a project. `project` is its canonical path. Does not follow symbolic links. Reports and
/// ignores unreadable files.
pub(super) fn of_project(project: &Path) -> CommandFiles {
    let Ok(mut directory) = beneath::open_root(project) else { return CommandFiles::default() };
    for name in DIRECTORIES {
        match beneath::open_directory(&directory, OsStr::new(name)) {
            Ok(inner) => directory = inner,
            Err(_) => return CommandFiles::default(),
        }
    }
    let names = beneath::list(&directory, MOST_NAMES + 1).unwrap_or_default();
    let names = names.into_iter().map(|(name, _)| name).collect();
    read(names, &place(), |name| {
        let bytes = beneath::read(&directory, name, MOST).map_err(|error| match error {
            Errno::ELOOP => "the file is a link".to_owned(),
            other => other.desc().to_owned(),
        })?;
        bytes.ok_or_else(|| format!("this is not a regular file of at most {MOST} bytes"))
    })
}

/// Reads the person's own commands. The files of the commands may be symbolic links, as the settings file may.
pub(super) fn of_user(directories: &Directories) -> CommandFiles {
    let place = directories.config.join(OWN);
    let Ok(entries) = std::fs::read_dir(&place) else { return CommandFiles::default() };
    let names = entries.take(MOST_NAMES + 1).filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    read(names, &place, |name| {
        let path = place.join(name);
        match own_text(&path, directories, MOST) {
            Ok(text) => Ok(text.unwrap_or_default().into_bytes()),
            Err(error) => Err(error.to_string()),
        }
    })
}

fn read(
    mut names: Vec<OsString>,
    place: &Path,
    bytes: impl Fn(&OsStr) -> Result<Vec<u8>, String>,
) -> CommandFiles {
    if names.len() > MOST_NAMES {
        let ignored = Some(format!("the directory has more than {MOST_NAMES} files"));
        return CommandFiles { files: Vec::new(), ignored };
    }
    names.retain(|name| Path::new(name).extension() == Some(OsStr::new("md")));
    names.sort();
    let beyond = names.len().saturating_sub(MOST_COMMANDS);
    let ignored =
        (beyond > 0).then(|| format!("the directory has {beyond} commands beyond the first {MOST_COMMANDS}"));
    let file = |name: &OsString| {
        let command = bytes(name).and_then(|bytes| Ok((command(name, &bytes)?, FileDigest::of(&bytes))));
        CommandFile { path: place.join(name), command }
    };
    CommandFiles { files: names.iter().take(MOST_COMMANDS).map(file).collect(), ignored }
}

fn command(name: &OsStr, bytes: &[u8]) -> Result<OwnCommand, String> {
    let text = str::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned())?;
    let stem = Path::new(name).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    parse(stem, text)
}

fn parse(name: &str, text: &str) -> Result<OwnCommand, String> {
    check_name(name)?;
    let text = text.replace("\r\n", "\n");
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(is_odd) {
        return Err("the file has control characters".to_owned());
    }
    let mut command = OwnCommand {
        name: name.to_owned(),
        description: String::new(),
        text: String::new(),
        reads: false,
        model: None,
        of_project: false,
    };
    let mut lines = text.lines().enumerate().peekable();
    if lines.next_if(|(_, line)| line.trim_end() == FENCE).is_some() {
        loop {
            match lines.next().map(|(at, line)| (at, line.trim())) {
                Some((_, FENCE)) => break,
                Some((_, line)) if line.is_empty() || line.starts_with('#') => {}
                Some((at, line)) => {
                    set(&mut command, line).map_err(|why| format!("line {}: {why}", at + 1))?;
                }
                None => {
                    return Err(format!(
                        "the list of fields has no end: expected a line {FENCE} after the last field"
                    ));
                }
            }
        }
    }
    let lines: Vec<_> = lines.map(|(_, line)| line).collect();
    lines.join("\n").trim().clone_into(&mut command.text);
    let Some(first) = command.text.lines().next() else { return Err("the file has no text".to_owned()) };
    if command.description.is_empty() {
        command.description =
            first.trim_start_matches(['#', ' ']).chars().take(LONGEST_DESCRIPTION).collect();
    }
    Ok(command)
}

fn set(command: &mut OwnCommand, line: &str) -> Result<(), String> {
    let (field, value) = line.split_once(':').ok_or_else(|| "expected `field: value`".to_owned())?;
    let value = value.trim().trim_matches(['"', '\'']);
    match (field, value) {
        ("description" | "model", "") => return Err(format!("`{field}`: expected a text")),
        ("description" | "model", value) if value.chars().count() > LONGEST_DESCRIPTION => {
            return Err(format!("`{field}`: expected at most {LONGEST_DESCRIPTION} characters"));
        }
        ("description", value) => value.clone_into(&mut command.description),
        ("model", value) => command.model = Some(value.to_owned()),
        ("access", "read") => command.reads = true,
        ("access", _) => {
            return Err("`access`: expected read, since a command cannot give more access".to_owned());
        }
        _ => {
            return Err(format!("a command has no field {field:?}: expected description, access or model"));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(format!(
            "this name cannot be the name of a command: expected at most {LONGEST_NAME} of a-z, 0-9, `-` and `_`"
        ));
    }
    if tui::commands::is_taken(name) {
        return Err(format!("/{name} is a command of Bailiwick"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn told(files: &CommandFiles) -> String {
        let one = |file: &CommandFile| {
            let command = match &file.command {
                Ok((command, _)) => {
                    let access = if command.reads { " (reads)" } else { "" };
                    let model =
                        command.model.as_deref().map(|model| format!(" by {model}")).unwrap_or_default();
                    format!("{}{access}{model}", command.description)
                }
                Err(why) => format!("ignored: {why}"),
            };
            format!("{}: {command}", file.path.display().to_string().escape_debug())
        };
        files.files.iter().map(one).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn hostile_files_are_ignored_with_a_reason_and_the_others_work() {
        let place = tempfile::tempdir().unwrap();
        assert!(of_project(place.path()).files.is_empty());
        let commands = place.path().join(".bailiwick/commands");
        fs::create_dir_all(commands.join("dir.md")).unwrap();
        let write = |name: &str, text: &str| fs::write(commands.join(name), text).unwrap();
        write("a.md", "# Explain\nExplain $1.");
        write("b.md", "---\ndescription: \"Finds faults\"\naccess: read\nmodel: small\n---\nFind $ARGUMENTS");
        write("big.md", &"x".repeat(MOST + 1));
        write("control.md", "a\u{1b}[2Jb");
        write("empty.md", "---\naccess: read\n---\n \n");
        write("line\nfeed.md", "x");
        write("mode.md", "x");
        write("net.md", "x");
        write("Upper.md", "x");
        write("wide.md", "---\naccess: write\n---\nx");
        write("unknown.md", "---\nallowed-tools: Bash(*)\n---\nx");
        write("open.md", "---\naccess: read\nx");
        write("notes.txt", "not looked at");
        symlink("/etc/passwd", commands.join("link.md")).unwrap();
        symlink("a.md", commands.join("inner.md")).unwrap();
        nix::unistd::mkfifo(&commands.join("fifo.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(commands.join("bytes.md"), b"\xff").unwrap();
        insta::assert_snapshot!(told(&of_project(place.path())), @r#"
        .bailiwick/commands/Upper.md: ignored: this name cannot be the name of a command: expected at most 40 of a-z, 0-9, `-` and `_`
        .bailiwick/commands/a.md: Explain
        .bailiwick/commands/b.md: Finds faults (reads) by small
        .bailiwick/commands/big.md: ignored: this is not a regular file of at most 65536 bytes
        .bailiwick/commands/bytes.md: ignored: the file is not UTF-8
        .bailiwick/commands/control.md: ignored: the file has control characters
        .bailiwick/commands/dir.md: ignored: this is not a regular file of at most 65536 bytes
        .bailiwick/commands/empty.md: ignored: the file has no text
        .bailiwick/commands/fifo.md: ignored: this is not a regular file of at most 65536 bytes
        .bailiwick/commands/inner.md: ignored: the file is a link
        .bailiwick/commands/line\nfeed.md: ignored: this name cannot be the name of a command: expected at most 40 of a-z, 0-9, `-` and `_`
        .bailiwick/commands/link.md: ignored: the file is a link
        .bailiwick/commands/mode.md: ignored: /mode is a command of Bailiwick
        .bailiwick/commands/net.md: ignored: /net is a command of Bailiwick
        .bailiwick/commands/open.md: ignored: line 3: expected `field: value`
        .bailiwick/commands/unknown.md: ignored: line 2: a command has no field "allowed-tools": expected description, access or model
        .bailiwick/commands/wide.md: ignored: line 2: `access`: expected read, since a command cannot give more access
        "#);
    }

    #[test]
    fn a_directory_with_very_many_files_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let commands = place.path().join(".bailiwick/commands");
        fs::create_dir_all(&commands).unwrap();
        for at in 0..=MOST_COMMANDS {
            fs::write(commands.join(format!("c{at}.md")), "x").unwrap();
        }
        let some = of_project(place.path());
        assert_eq!(some.files.len(), MOST_COMMANDS);
        assert_eq!(some.ignored.unwrap(), "the directory has 1 commands beyond the first 100");
        for at in 0..10_000 {
            fs::write(commands.join(format!("x{at}")), "").unwrap();
        }
        let none = of_project(place.path());
        assert_eq!(
            (none.files.len(), none.ignored.unwrap().as_str()),
            (0, "the directory has more than 1000 files")
        );
    }

    #[test]
    fn a_directory_that_is_a_link_has_no_commands() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(elsewhere.path().join("commands")).unwrap();
        fs::write(elsewhere.path().join("commands/a.md"), "x").unwrap();
        symlink(elsewhere.path(), place.path().join(".bailiwick")).unwrap();
        assert!(of_project(place.path()).files.is_empty());
    }
}
