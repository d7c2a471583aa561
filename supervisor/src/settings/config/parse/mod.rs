//! The parser for settings files. Each error has a position.

mod kinds;
mod mcp;
mod suggest;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::{Document, Item, TableLike};

use super::error::{Problem, SettingsError};
use super::keys::{KEYS, Key, ProjectMay};
use super::layer::{Layer, Void};
use super::origin::{ConfigOrigin, SettingPlace};
use suggest::nearest;

/// Maximum number of problems of a file that are reported.
const MOST_PROBLEMS: usize = 20;

/// Name of the table with the person's settings for single projects.
const PROJECT: &str = "project";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOwner {
    Users,
    Projects,
}

/// Parses the text of a settings file. `file` is its name in errors.
pub fn parse(text: &str, file: &Path, whose: FileOwner) -> Result<Layer, SettingsError> {
    read(text, file, whose).map(|(layer, _)| layer)
}

/// Parses the person's file. Returns the general settings, and the settings for single projects.
pub(super) fn parse_users(text: &str, file: &Path) -> Result<(Layer, Vec<ForProject>), SettingsError> {
    read(text, file, FileOwner::Users)
}

fn read(text: &str, file: &Path, whose: FileOwner) -> Result<(Layer, Vec<ForProject>), SettingsError> {
    let file: Arc<Path> = Arc::from(file);
    let mut reader = SettingsReader {
        text,
        file,
        whose,
        layer: Layer::default(),
        for_projects: Vec::new(),
        in_project: false,
        problems: Vec::new(),
    };
    match Document::parse(text) {
        Ok(document) => reader.table(document.as_table(), ""),
        Err(error) => reader.wrong(error.span().map(|span| span.start), error.message().to_owned()),
    }
    if reader.problems.is_empty() {
        Ok((reader.layer, reader.for_projects))
    } else {
        Err(SettingsError::Wrong(reader.problems))
    }
}

struct SettingsReader<'a> {
    text: &'a str,
    file: Arc<Path>,
    whose: FileOwner,
    layer: Layer,
    for_projects: Vec<ForProject>,
    /// True while a table for a single project is read.
    in_project: bool,
    problems: Vec<Problem>,
}

#[derive(Debug)]
pub(super) struct ForProject {
    /// Path of the project as it was written: absolute, or below `~`.
    pub(super) project: PathBuf,
    pub(super) layer: Layer,
}

impl SettingsReader<'_> {
    /// Reads all keys of a table. `prefix` is the name of the table with a dot at its end.
    fn table(&mut self, table: &dyn TableLike, prefix: &str) {
        for (name, item) in table.iter() {
            let full = format!("{prefix}{name}");
            let at =
                table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span()).map(|span| span.start);
            let is_key = Key::named(&full).is_some() || is_table(&full);
            if self.in_project && !is_key {
                self.wrong(at, in_project(prefix, name));
                continue;
            }
            match Key::named(&full) {
                Some(key) => self.setting(key, at, item),
                None if full == PROJECT => self.projects(at, item),
                None if full == mcp::NAME => self.servers(at, item),
                None if tables::NAMES.contains(&full.as_str()) => self.own_table(&full, at, item),
                None if is_table(&full) => self.enter(&full, at, item),
                None if prefix == "agents." && item.is_table_like() => self.role(name, at, item),
                None => self.wrong(at, unknown(prefix, name)),
            }
        }
    }

    /// Reads the tables `[project."/path"]`. They may contain all keys, but no tables with free names such as `models`.
    fn projects(&mut self, at: Option<usize>, item: &Item) {
        if self.whose == FileOwner::Projects {
            return self.void(at, only_the_users(PROJECT));
        }
        for (name, at, item) in self.entries(PROJECT, at, item) {
            let is_place = name.starts_with('/') || name == "~" || name.starts_with("~/");
            let Some(table) = item.as_table_like().filter(|_| is_place && !name.contains('\0')) else {
                self.wrong(
                    at,
                    "`project`: expected a table with the project's path, as in [project.\"/home/me/repo\"]"
                        .to_owned(),
                );
                continue;
            };
            let outer = std::mem::take(&mut self.layer);
            self.in_project = true;
            self.table(table, "");
            self.in_project = false;
            let layer = std::mem::replace(&mut self.layer, outer);
            self.for_projects.push(ForProject { project: PathBuf::from(name), layer });
        }
    }

    fn enter(&mut self, name: &str, at: Option<usize>, item: &Item) {
        match item.as_table_like() {
            Some(table) => self.table(table, &format!("{name}.")),
            None => self.wrong(at, format!("`{name}` is a table: expected [{name}] on a line of its own")),
        }
    }

    fn setting(&mut self, key: &'static Key, at: Option<usize>, item: &Item) {
        if self.whose == FileOwner::Projects && key.project == ProjectMay::Never {
            return self.void(at, only_the_users(key.name));
        }
        if self.whose == FileOwner::Projects && key.name == "rights.net" && is_on(item) {
            return self.void(at, "a project cannot turn the network on (use --net on)".to_owned());
        }
        let at = at.unwrap_or_default();
        let origin_of = |at: usize| self.origin(at);
        match kinds::value(key, item, at, &origin_of) {
            Ok(value) => {
                let origin = self.origin(at);
                self.layer.set(key, value, origin);
            }
            Err(kinds::BadValue { at, expected }) => {
                let text = format!("`{}`: expected {expected}", key.name);
                // A setting that can only add access may be ignored without harm.
                if self.whose == FileOwner::Projects && key.project == ProjectMay::IfTrusted {
                    self.void(Some(at), text);
                } else {
                    self.wrong(Some(at), text);
                }
            }
        }
    }

    fn origin(&self, at: usize) -> ConfigOrigin {
        let place = SettingPlace::of(&self.file, self.text, at);
        match self.whose {
            FileOwner::Users => ConfigOrigin::User(place),
            FileOwner::Projects => ConfigOrigin::Project(place),
        }
    }

    /// Records a line as ignored, because it could only add access. A mistake in an untrusted file prevents no session.
    fn void(&mut self, at: Option<usize>, why: String) {
        if self.layer.void.len() < MOST_PROBLEMS {
            let origin = self.origin(at.unwrap_or_default());
            self.layer.void.push(Void { origin, why });
        }
    }

    fn wrong(&mut self, at: Option<usize>, what: String) {
        if self.problems.len() < MOST_PROBLEMS {
            let place = SettingPlace::of(&self.file, self.text, at.unwrap_or_default());
            self.problems.push(Problem { place, what });
        }
    }
}

/// Returns the error for a key that a project's file cannot set.
fn only_the_users(name: &str) -> String {
    format!("`{name}` is allowed only in your own config.toml")
}

/// Returns the error for a name that is not allowed in a table for a single project.
fn in_project(prefix: &str, name: &str) -> String {
    let full = format!("{prefix}{name}");
    if full == PROJECT || full == mcp::NAME || tables::NAMES.contains(&full.as_str()) || prefix == "agents." {
        let shown: String = full.chars().take(80).flat_map(char::escape_debug).collect();
        return format!("`{shown}` applies to every project: it is not allowed in [project.…]");
    }
    unknown(prefix, name)
}

/// True if the item would turn the whole network on. A settings file cannot do that, so the item is only reported.
fn is_on(item: &Item) -> bool {
    item.as_str() == Some("on") || item.as_bool() == Some(true)
}

/// True if keys begin with this name and a dot, so that it is the name of a table.
fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

fn unknown(prefix: &str, name: &str) -> String {
    let full = format!("{prefix}{name}");
    let shown: String = full.chars().take(80).flat_map(char::escape_debug).collect();
    match nearest(prefix, name) {
        Some(meant) => format!("unknown key `{shown}`; did you mean `{meant}`?"),
        None => format!("unknown key `{shown}`; `bailiwick config keys` lists them"),
    }
}

/// Returns the bytes of a file as text. Fails if there are more than `most` bytes, or if they are not UTF-8.
pub(super) fn text(bytes: Vec<u8>, file: &Path, most: usize) -> Result<String, SettingsError> {
    if bytes.len() > most {
        return Err(SettingsError::TooLarge { file: file.to_owned(), most });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default()).into_owned();
        let place = SettingPlace::of(&Arc::from(file), &before, valid);
        SettingsError::Wrong(vec![Problem { place, what: "not UTF-8".to_owned() }])
    })
}
