//! `search_files`: searches files by a regular expression with ripgrep's libraries.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use ipc::denial::Operation;
use ipc::message::Chunk;
use ipc::tool::{Matches, SearchFiles, ToolErrorKind};

use super::found::{Found, Kept, Lines};
use super::ignore_rules::Traps;
use crate::assignment::Assignment;
use crate::fault::{Result, failed, refused_io};
use crate::open_call::OpenCall;

/// Number of matching lines after which a search ends.
const ENOUGH: u64 = 10_000;
const THREADS: usize = 4;

/// Searches files. Sends matches while it searches. Fails for an invalid pattern or glob.
pub fn search_files(assignment: &Assignment, call: &SearchFiles, open: &OpenCall) -> Result<Matches> {
    let root =
        call.path.as_ref().map_or_else(|| assignment.project.clone(), |path| assignment.absolute(path));
    if call.inside {
        assignment.stays_inside(&root, &root)?;
    }
    let search = Search {
        matcher: matcher(&call.pattern)?,
        glob: call.glob.as_deref().map(Glob::new).transpose()?,
        shown: call.path.as_ref().map(|path| path.as_path().to_owned()).unwrap_or_default(),
        open,
        kept: Mutex::new(Kept::default()),
        searched: AtomicU64::new(0),
        matches: AtomicU64::new(0),
        root,
    };
    search.run()?;
    open.check()?;
    search.finish()
}

/// Compiles a pattern that matches within lines, as in ripgrep. Fails for a pattern that spans lines.
fn matcher(pattern: &str) -> Result<RegexMatcher> {
    RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build(pattern).map_err(|error| {
        let message =
            format!("The pattern is not a regular expression that can be searched by lines: {error}");
        failed(ToolErrorKind::InvalidArgument, message)
    })
}

/// Filter of paths by a glob. Without a slash it matches file names, with one it matches paths below the root. A
/// leading `!` excludes the matching paths.
struct Glob {
    matcher: GlobMatcher,
    whole: bool,
    wanted: bool,
}

impl Glob {
    fn new(glob: &str) -> Result<Self> {
        let (wanted, text) = glob.strip_prefix('!').map_or((true, glob), |text| (false, text));
        let text = text.trim_start_matches("./").trim_start_matches('/');
        let built = GlobBuilder::new(text).literal_separator(true).build().map_err(|error| {
            failed(
                ToolErrorKind::InvalidArgument,
                format!("The glob `{glob}` is not valid: {}.", error.kind()),
            )
        })?;
        Ok(Self { matcher: built.compile_matcher(), whole: text.contains('/'), wanted })
    }

    fn takes(&self, relative: &Path) -> bool {
        let name = relative.file_name().map_or(relative, Path::new);
        self.matcher.is_match(if self.whole { relative } else { name }) == self.wanted
    }
}

struct Search<'a> {
    root: PathBuf,
    shown: PathBuf,
    matcher: RegexMatcher,
    glob: Option<Glob>,
    open: &'a OpenCall,
    kept: Mutex<Kept>,
    searched: AtomicU64,
    matches: AtomicU64,
}

impl Search<'_> {
    fn run(&self) -> Result<()> {
        let metadata =
            self.root.metadata().map_err(|error| refused_io(Operation::Read, &self.root, &error))?;
        if !metadata.is_dir() {
            return self.root_file(metadata.file_type());
        }
        super::list_directory::readable_directory(&self.root)?;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let traps = Traps::new(&self.root)?;
        let met = traps.clone();
        let walk = WalkBuilder::new(&self.root)
            .hidden(false)
            .filter_entry(move |entry| {
                (entry.file_name() != ".git" || entry.depth() == 0) && met.passes(entry)
            })
            .threads(threads)
            .build_parallel();
        walk.run(|| {
            let mut searcher = searcher();
            Box::new(move |entry| self.visit(&mut searcher, entry))
        });
        traps.finish()
    }

    fn root_file(&self, kind: std::fs::FileType) -> Result<()> {
        if !kind.is_file() {
            return Err(super::read_file::wrong_kind(&self.root, kind));
        }
        let file = std::fs::File::open(&self.root);
        file.map_err(|error| refused_io(Operation::Read, &self.root, &error))?;
        self.search(&mut searcher(), &self.root, Path::new(""));
        Ok(())
    }

    fn visit(
        &self,
        searcher: &mut Searcher,
        entry: std::result::Result<DirEntry, ignore::Error>,
    ) -> WalkState {
        if self.open.is_cancelled() || self.matches.load(Ordering::Relaxed) >= ENOUGH {
            return WalkState::Quit;
        }
        // A search does not fail for one unreadable directory of many.
        let Ok(entry) = entry else {
            return WalkState::Continue;
        };
        let relative = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && self.glob.as_ref().is_none_or(|glob| glob.takes(relative)) {
            self.search(searcher, entry.path(), relative);
        }
        WalkState::Continue
    }

    fn search(&self, searcher: &mut Searcher, path: &Path, relative: &Path) {
        self.searched.fetch_add(1, Ordering::Relaxed);
        let shown =
            if relative.as_os_str().is_empty() { self.shown.clone() } else { self.shown.join(relative) };
        let mut lines = Lines::new(&shown, self.open);
        // Matches before an error stay in the result.
        let _ = searcher.search_path(&self.matcher, path, &mut lines);
        if let Some(found) = lines.finish() {
            self.matches.fetch_add(found.matches, Ordering::Relaxed);
            self.keep(shown, found);
        }
    }

    fn keep(&self, shown: PathBuf, found: Found) {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let streamed = kept.stream(&found);
        kept.add(shown, found);
        drop(kept);
        if let Some(text) = streamed {
            // On failure the call is cancelled, and the next file ends the search.
            let _ = self.open.output(Chunk::Text(text));
        }
    }

    fn finish(self) -> Result<Matches> {
        let kept = self.kept.into_inner().map_err(|_| {
            failed(
                ToolErrorKind::System,
                "The search failed because of an internal error; try another pattern.",
            )
        })?;
        let ended = (self.matches.load(Ordering::Relaxed) >= ENOUGH)
            .then(|| format!("the search ended after {ENOUGH} matching lines"));
        Ok(kept.finish(self.searched.into_inner(), ended))
    }
}

fn searcher() -> Searcher {
    SearcherBuilder::new().line_number(true).binary_detection(BinaryDetection::quit(0)).build()
}
