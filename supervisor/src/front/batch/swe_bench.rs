//! Instances of SWE-bench from its data sets. A row also contains the fix and its tests; these fields are not read.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use sha2::{Digest, Sha256};

use super::engine::swe_bench_image;
use super::task::{
    BatchTask, List, TESTBED, TaskError, TaskLimits, TaskSource, Tasks, checked_commit, hex, in_image, lines,
    said,
};

const TEMPLATE: &str = include_str!("swe_bench.txt");

/// Maximum size in bytes of a file that is one JSON array.
const MOST_ARRAY: u64 = 512 << 20;

#[derive(Deserialize)]
struct InstanceRow {
    instance_id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    #[serde(default)]
    version: Option<String>,
    /// Additional part of the problem statement, only in SWE-bench Pro.
    #[serde(default)]
    requirements: Option<String>,
    #[serde(default)]
    interface: Option<String>,
    /// Tag of the instance's image, only in SWE-bench Pro.
    #[serde(default)]
    dockerhub_tag: Option<String>,
    /// Name of the instance's image, in data sets that have one.
    #[serde(default, alias = "docker_image")]
    image_name: Option<String>,
    #[serde(default)]
    image: Option<String>,
}

const PRO_IMAGES: &str = "docker.io/jefzda/sweap-images";

const PRO_PROJECT: &str = "/app";

struct Maker<'a> {
    /// Directory with clones of the repositories; `None` if instances run in their images.
    repos: Option<&'a Path>,
    template: &'a str,
}

/// Reads the tasks of a data set. `repos` has clones of the repositories; without it, instances run in their images.
pub(super) fn read(path: &Path, repos: Option<&Path>, template: Option<&Path>) -> Result<Tasks, TaskError> {
    let own = template.map(|path| {
        fs::read_to_string(path).map_err(|source| TaskError::Read { path: path.to_owned(), source })
    });
    let own = own.transpose()?;
    let maker = Maker { repos, template: own.as_deref().unwrap_or(TEMPLATE) };
    let failed = |source| TaskError::Read { path: path.to_owned(), source };
    let mut list = List::new(path);
    let digest = if is_array(path).map_err(failed)? {
        if fs::metadata(path).map_err(failed)?.len() > MOST_ARRAY {
            return Err(TaskError::LargeArray(path.to_owned()));
        }
        array(path, &maker, &mut list)?
    } else {
        lines(path, |number, line| {
            let row = serde_json::from_slice::<InstanceRow>(line).map_err(said);
            list.add(number, row.and_then(|row| maker.task(row)))
        })?
    };
    Ok(Tasks { is_swe_bench: true, ..list.finish(digest)? })
}

/// True if the file is one JSON array: its first character that is no space is `[`.
fn is_array(path: &Path) -> std::io::Result<bool> {
    let mut file = BufReader::new(File::open(path)?);
    let start = file.fill_buf()?;
    Ok(start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'['))
}

impl Maker<'_> {
    fn task(&self, row: InstanceRow) -> Result<BatchTask, String> {
        let prompt = self.prompt(&row);
        let source = match self.repos {
            Some(repos) => TaskSource::Commit {
                repository: repository(repos, &row.repo)?,
                commit: checked_commit(row.base_commit)?,
            },
            None => image(&row)?,
        };
        Ok(BatchTask { id: row.instance_id, prompt, source, limits: TaskLimits::default() })
    }

    fn prompt(&self, row: &InstanceRow) -> String {
        let mut statement = row.problem_statement.clone();
        for (heading, part) in [("Requirements", &row.requirements), ("Interface", &row.interface)] {
            if let Some(part) = part.as_deref().filter(|part| !part.trim().is_empty()) {
                statement = format!("{statement}\n\n{heading}:\n{part}");
            }
        }
        fill(
            self.template,
            &[
                ("problem_statement", &statement),
                ("repo", &row.repo),
                ("instance_id", &row.instance_id),
                ("base_commit", &row.base_commit),
                ("version", row.version.as_deref().unwrap_or_default()),
            ],
        )
    }
}

fn repository(repos: &Path, repo: &str) -> Result<PathBuf, String> {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let (owner, name) = repo
        .split_once('/')
        .filter(|(owner, name)| part(owner) && part(name))
        .ok_or("repo: expected OWNER/NAME of letters, digits, `.`, `_` and `-`")?;
    let forms = [format!("{owner}/{name}"), format!("{owner}__{name}"), format!("{owner}/{name}.git")];
    let found = forms.iter().map(|form| repos.join(form)).find(|path| path.is_dir());
    let found = found.and_then(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        let wanted = repos.join(&forms[0]);
        format!("no clone of {repo}\n  hint: git clone https://github.com/{repo} {}", wanted.display())
    })
}

/// Returns the source for an instance that runs in its image. Fails if the image's name is invalid.
fn image(row: &InstanceRow) -> Result<TaskSource, String> {
    match (row.image_name.as_ref().or(row.image.as_ref()), &row.dockerhub_tag) {
        (Some(image), None) => in_image(image.clone(), TESTBED.to_owned()),
        (_, Some(tag)) => in_image(format!("{PRO_IMAGES}:{tag}"), PRO_PROJECT.to_owned()),
        (None, None) => in_image(swe_bench_image(&row.instance_id), TESTBED.to_owned()),
    }
}

/// Replaces each `{name}` in a template by its value. Braces inside a value have no meaning.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let value = after.split_once('}').and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((*value, after))
        });
        let (value, after) = value.unwrap_or(("{", after));
        text.push_str(value);
        rest = after;
    }
    text + rest
}

/// Reads the instances from a JSON array, and returns the file's digest. Only one element is in memory at a time.
fn array(path: &Path, maker: &Maker<'_>, list: &mut List<'_>) -> Result<String, TaskError> {
    let failed = |source| TaskError::Read { path: path.to_owned(), source };
    let mut digest = Sha256::new();
    let mut bytes = BufReader::new(File::open(path).map_err(failed)?);
    loop {
        let piece = bytes.fill_buf().map_err(failed)?;
        if piece.is_empty() {
            break;
        }
        digest.update(piece);
        let read = piece.len();
        bytes.consume(read);
    }
    let file = BufReader::new(File::open(path).map_err(failed)?);
    let mut reader = serde_json::Deserializer::from_reader(file);
    let mut error = None;
    let elements = Elements { maker, list, error: &mut error };
    let read = elements.deserialize(&mut reader).and_then(|()| reader.end());
    match (error, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(failed(error.into())),
        (None, Ok(())) => Ok(hex(digest)),
    }
}

struct Elements<'a, 'b> {
    maker: &'a Maker<'a>,
    list: &'a mut List<'b>,
    error: &'a mut Option<TaskError>,
}

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON array of SWE-bench instances")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(row) = rows.next_element::<InstanceRow>()? {
            number += 1;
            if let Err(error) = self.list.add(number, self.maker.task(row)) {
                let told = serde::de::Error::custom(&error);
                *self.error = Some(error);
                return Err(told);
            }
        }
        Ok(())
    }
}
