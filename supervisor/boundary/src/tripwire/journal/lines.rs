//! Lines of a journal, which all sessions in a watched directory write and read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipc::path::WirePath;
use serde::{Deserialize, Serialize};

use super::super::access::PlaceAccess;
use super::super::references::References;
use super::super::state::{FileBody, FileKind, FileStamp, WatchState, WatchedPlace};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalLine {
    /// First line of a journal, with the format's version and the id of the machine's boot.
    Began {
        version: u32,
        boot: String,
    },
    /// A session begins a tool call that may write.
    Working {
        session: String,
    },
    /// No tool call of the session may write any more. `everything` is true if the whole directory was then searched.
    Resting {
        session: String,
        everything: bool,
    },
    /// Files that are watched because another watched file refers to them.
    References(Vec<ReferenceLine>),
    Changed {
        part: BaselinePart,
        by: Author,
        delta: StateDelta,
    },
}

pub(super) const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum BaselinePart {
    Listed,
    Nested,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Author {
    Person,
    /// Agent that made a change which may stay.
    Agent,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReferenceLine {
    path: WirePath,
    kind: FileKind,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct StateDelta {
    places: Vec<PlaceLine>,
    gone: Vec<WirePath>,
    /// All watched directories. `None` if none of them changed.
    directories: Option<Vec<DirectoryLine>>,
    repositories: Option<Vec<WirePath>>,
    unreached: Option<Vec<WirePath>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DirectoryLine {
    path: WirePath,
    access: AccessLine,
}

#[derive(Debug, Serialize, Deserialize)]
struct AccessLine {
    mode: u32,
    owner: u32,
    group: u32,
    /// Access control list (acl(5)), in base64; `None` if there is none.
    list: Option<String>,
    default: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PlaceLine {
    path: WirePath,
    kind: FileKind,
    access: AccessLine,
    body: BodyLine,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BodyLine {
    File(String),
    Link(WirePath),
    Directory,
    Closed(FileStamp),
}

impl StateDelta {
    /// Returns the differences between two states; `None` if they are equal.
    pub(in super::super) fn between(before: &WatchState, now: &WatchState) -> Option<Self> {
        let places = now.places.iter().filter(|(path, place)| before.places.get(*path) != Some(*place));
        let gone = before.places.keys().filter(|path| !now.places.contains_key(*path));
        let delta = Self {
            places: places.map(|(path, place)| PlaceLine::of(path, place)).collect(),
            gone: gone.map(WirePath::from).collect(),
            directories: (before.directories != now.directories).then(|| directories(now)),
            repositories: (before.repositories != now.repositories).then(|| all(&now.repositories)),
            unreached: (before.unreached != now.unreached).then(|| all(&now.unreached)),
        };
        let is_empty = delta.places.is_empty()
            && delta.gone.is_empty()
            && delta.directories.is_none()
            && delta.repositories.is_none()
            && delta.unreached.is_none();
        (!is_empty).then_some(delta)
    }

    /// Applies the differences to `state`, and calls `each` for every changed path. `None` if a line is invalid.
    pub(in super::super) fn apply(
        self,
        state: &mut WatchState,
        mut each: impl FnMut(&Path, Option<&WatchedPlace>),
    ) -> Option<()> {
        for path in self.gone {
            each(path.as_path(), None);
            state.places.remove(path.as_path());
        }
        for line in self.places {
            let (path, place) = line.place()?;
            each(&path, Some(&place));
            state.places.insert(path, place);
        }
        let paths = |all: Vec<WirePath>| all.into_iter().map(PathBuf::from);
        if let Some(directories) = self.directories {
            let directory = |line: DirectoryLine| Some((line.path.into(), line.access.access()?));
            state.directories = directories.into_iter().map(directory).collect::<Option<_>>()?;
        }
        if let Some(repositories) = self.repositories {
            state.repositories = paths(repositories).collect();
        }
        if let Some(unreached) = self.unreached {
            state.unreached = paths(unreached).collect();
        }
        Some(())
    }
}

impl PlaceLine {
    fn of(path: &Path, place: &WatchedPlace) -> Self {
        let body = match &place.body {
            FileBody::File(content) => BodyLine::File(STANDARD.encode(content)),
            FileBody::Link(target) => BodyLine::Link(Path::new(target).into()),
            FileBody::Directory => BodyLine::Directory,
            FileBody::Closed(stamp) => BodyLine::Closed(*stamp),
        };
        Self { path: path.into(), kind: place.kind, access: AccessLine::of(&place.access), body }
    }

    fn place(self) -> Option<(PathBuf, WatchedPlace)> {
        let body = match self.body {
            BodyLine::File(content) => FileBody::File(Arc::from(STANDARD.decode(content).ok()?)),
            BodyLine::Link(target) => FileBody::Link(OsString::from_vec(target.as_bytes().to_vec())),
            BodyLine::Directory => FileBody::Directory,
            BodyLine::Closed(stamp) => FileBody::Closed(stamp),
        };
        Some((self.path.into(), WatchedPlace { kind: self.kind, body, access: self.access.access()? }))
    }
}

impl AccessLine {
    fn of(access: &PlaceAccess) -> Self {
        let PlaceAccess { mode, owner, group, list, default } = access;
        let [list, default] = [list, default].map(|list| list.as_ref().map(|list| STANDARD.encode(list)));
        Self { mode: *mode, owner: *owner, group: *group, list, default }
    }

    fn access(self) -> Option<PlaceAccess> {
        let Self { mode, owner, group, list, default } = self;
        let list_of = |text: Option<String>| match text {
            Some(text) => STANDARD.decode(text).ok().map(|list| Some(Arc::from(list))),
            None => Some(None),
        };
        Some(PlaceAccess { mode, owner, group, list: list_of(list)?, default: list_of(default)? })
    }
}

pub(super) fn references(references: &References) -> JournalLine {
    let line = |(path, kind): (&PathBuf, &FileKind)| ReferenceLine { path: path.into(), kind: *kind };
    JournalLine::References(references.iter().map(line).collect())
}

pub(super) fn referenced(lines: Vec<ReferenceLine>) -> References {
    lines.into_iter().map(|line| (line.path.into(), line.kind)).collect::<BTreeMap<_, _>>()
}

fn directories(state: &WatchState) -> Vec<DirectoryLine> {
    let line = |(path, access): (&PathBuf, &PlaceAccess)| DirectoryLine {
        path: path.into(),
        access: AccessLine::of(access),
    };
    state.directories.iter().map(line).collect()
}

fn all<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<WirePath> {
    paths.into_iter().map(WirePath::from).collect()
}
