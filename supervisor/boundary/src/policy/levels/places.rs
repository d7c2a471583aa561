//! Directories of the levels of access of one project.
//!
//! Next to each directory `NAME/`, the file `NAME.level` describes the level. No agent can write to that file.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use ipc::confinement::Identity;

use super::bring::Copier;
use super::level::Level;
use crate::tripwire::beneath::open_root;

const RECORD: &str = "level";

#[derive(Clone, Debug)]
pub struct LevelPlaces {
    root: PathBuf,
    /// User that workers run as. `None` if it is this process's user.
    identity: Option<Identity>,
}

impl LevelPlaces {
    /// Returns the directories of levels in `root`. Agents must not be able to write `root`.
    pub const fn new(root: PathBuf, identity: Option<Identity>) -> Self {
        Self { root, identity }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a level's directory. The directory need not exist.
    pub fn place(&self, level: &Level) -> PathBuf {
        self.root.join(level.name())
    }

    pub fn make(&self, level: &Level) -> io::Result<PathBuf> {
        let place = self.place(level);
        // The record is written before any file can be in the directory.
        if level_of(&place).as_ref() != Some(level) {
            let fresh = place.with_extension(format!("{}-new", std::process::id()));
            fs::write(&fresh, serde_json::to_vec(level)?)?;
            fs::rename(fresh, record(&place))?;
        }
        match DirBuilder::new().mode(0o700).create(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(place),
            made => made?,
        }
        if let Some(Identity { uid, gid }) = self.identity {
            chown(&place, Some(uid), Some(gid))?;
        }
        Ok(place)
    }

    /// Returns the directories of all other levels with at least this access. Programs of `level` may execute files
    /// there.
    pub fn above(&self, level: &Level) -> Vec<PathBuf> {
        let own = self.place(level);
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten().map(|entry| entry.path());
        let places = entries.filter(|path| path.extension().is_some_and(|ending| ending == RECORD));
        let places = places.map(|path| path.with_extension(""));
        let mut above: Vec<_> = places
            .filter(|place| *place != own && level_of(place).is_some_and(|found| found.covers(level)))
            .collect();
        above.sort();
        above
    }

    /// Copies files from the directories of levels with more access to `caches`, those of a worker. `temp` is the
    /// worker's private temp directory, which contains `caches` if the level is the lowest.
    pub fn read_down(&self, caches: &Path, temp: Option<&Path>) -> io::Result<()> {
        let level = match caches.strip_prefix(&self.root) {
            Ok(_) => level_of(caches)
                .ok_or_else(|| io::Error::other("the directory is not one of Bailiwick's caches"))?,
            Err(_) => Level::default(),
        };
        let above: Vec<_> = self.above(&level).into_iter().filter(|place| !is_empty(place)).collect();
        if above.is_empty() {
            return Ok(());
        }
        let temp = temp.filter(|temp| caches.starts_with(temp));
        let mut copier = Copier::new(self.identity, open_root(temp.unwrap_or(&self.root))?)?;
        let into = match temp {
            Some(_) => copier.directory_in_temp(caches)?,
            // No agent can replace the directory of a level.
            None => open_root(caches)?,
        };
        above.iter().try_for_each(|place| copier.bring(place, &into))
    }
}

fn level_of(place: &Path) -> Option<Level> {
    serde_json::from_slice(&fs::read(record(place)).ok()?).ok()
}

fn record(place: &Path) -> PathBuf {
    place.with_extension(RECORD)
}

pub fn is_empty(place: &Path) -> bool {
    fs::read_dir(place).map_or(true, |mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use ipc::rights::Network;
    use nix::sys::stat::Mode;

    use super::super::level::tests::{level, levels};
    use super::*;

    struct Site {
        place: tempfile::TempDir,
        places: LevelPlaces,
        high: PathBuf,
        low: PathBuf,
    }

    fn site() -> Site {
        let place = tempfile::tempdir().unwrap();
        let places = LevelPlaces::new(place.path().join("root"), None);
        fs::create_dir(places.root()).unwrap();
        let [high, low] = [(Network::On, true), (Network::Off, false)]
            .map(|(net, approved)| places.make(&level(&["/p"], net, approved)).unwrap());
        Site { place, places, high, low }
    }

    fn write(path: PathBuf, content: &str, age: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    impl Site {
        fn read_down(&self) {
            self.places.read_down(&self.low, None).unwrap();
        }

        fn low(&self, name: &str) -> String {
            fs::read_to_string(self.low.join(name)).unwrap_or_else(|error| error.kind().to_string())
        }
    }

    /// Tests that a level reads the directory of another only if that other level has all of its access.
    #[test]
    fn nothing_is_executed_that_was_written_under_fewer_rights() {
        let [root, temp] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let places = LevelPlaces::new(root.path().to_owned(), None);
        for level in levels() {
            fs::write(places.make(&level).unwrap().join(level.name()), "").unwrap();
        }
        for reader in levels() {
            let caches = if reader.is_lowest() { temp.path().join("caches") } else { places.place(&reader) };
            fs::create_dir_all(&caches).unwrap();
            places.read_down(&caches, Some(temp.path())).unwrap();
            for writer in levels().iter().filter(|writer| **writer != reader) {
                let is_read = caches.join(writer.name()).exists();
                assert_eq!(is_read, writer.covers(&reader), "{} reads {}", reader.name(), writer.name());
            }
            // From here on, copied files have only the rights of their new level.
            if !reader.is_lowest() {
                fs::remove_dir_all(&caches).unwrap();
                fs::create_dir(&caches).unwrap();
                fs::write(caches.join(reader.name()), "").unwrap();
            }
        }
    }

    #[test]
    fn what_was_brought_is_there_with_its_times_and_modes() {
        let site = site();
        write(site.high.join("npm/a/b"), "fetched", 1000);
        fs::set_permissions(site.high.join("npm/a/b"), fs::Permissions::from_mode(0o555)).unwrap();
        fs::set_permissions(site.high.join("npm/a"), fs::Permissions::from_mode(0o555)).unwrap();
        symlink("a/b", site.high.join("npm/link")).unwrap();
        site.read_down();
        site.read_down();
        assert_eq!((site.low("npm/a/b"), site.low("npm/link")), ("fetched".into(), "fetched".into()));
        let [from, to] = [&site.high, &site.low].map(|place| fs::metadata(place.join("npm/a/b")).unwrap());
        assert_eq!((from.mtime_nsec(), from.mtime(), from.mode()), (to.mtime_nsec(), to.mtime(), to.mode()));
        assert!(
            from.ino() != to.ino() && fs::read_link(site.low.join("npm/link")).unwrap() == Path::new("a/b")
        );
    }

    #[test]
    fn the_levels_own_stays_unless_there_is_something_newer() {
        let site = site();
        for (name, [high, low]) in [("older", [9, 1]), ("newer", [1, 9])] {
            write(site.high.join("c").join(name), "high", high * 1000);
            write(site.low.join("c").join(name), "low", low * 1000);
        }
        write(site.high.join("c/file"), "high", 0);
        write(site.low.join("c/file/inner"), "low", 0);
        symlink("nowhere", site.low.join("c/link")).unwrap();
        write(site.high.join("c/link"), "high", 0);
        site.read_down();
        assert_eq!(
            [site.low("c/older"), site.low("c/newer"), site.low("c/file/inner")],
            ["low", "high", "low"]
        );
        assert_eq!(fs::read_link(site.low.join("c/link")).unwrap(), Path::new("nowhere"));
        let left = fs::read_dir(site.low.join("c")).unwrap().count();
        assert_eq!(left, 4, "nothing half done");
    }

    #[test]
    fn no_link_and_no_fifo_leads_anywhere() {
        let site = site();
        let outside = site.place.path().join("outside");
        write(outside.join("key"), "secret", 0);
        symlink(&outside, site.high.join("linked")).unwrap();
        nix::unistd::mkfifo(&site.high.join("fifo"), Mode::S_IRWXU).unwrap();
        write(site.high.join("d/planted"), "planted", 0);
        symlink(&outside, site.low.join("d")).unwrap();
        site.read_down();
        assert!(!outside.join("planted").exists(), "the target's link was followed");
        assert!(fs::symlink_metadata(site.low.join("linked")).unwrap().is_symlink());
        assert!(!site.low.join("fifo").exists());
        // The private temp directory is the agent's own, too.
        let temp = site.place.path().join("temp");
        fs::create_dir(&temp).unwrap();
        symlink(&outside, temp.join("caches")).unwrap();
        assert!(site.places.read_down(&temp.join("caches"), Some(&temp)).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn a_file_of_another_user_is_not_copied() {
        let site = site();
        write(site.high.join("own"), "own", 0);
        write(site.high.join("another"), "another", 0);
        if chown(site.high.join("another"), Some(12345), None).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        site.read_down();
        assert_eq!([site.low("own"), site.low("another")], ["own", "entity not found"]);
    }

    #[test]
    fn a_cache_that_is_too_large_is_left_out_and_the_others_come() {
        let site = site();
        write(site.high.join("small/file"), "small", 0);
        fs::create_dir(site.high.join("large")).unwrap();
        File::create(site.high.join("large/file")).unwrap().set_len((1 << 30) + 1).unwrap();
        site.read_down();
        assert_eq!(site.low("small/file"), "small");
        let shares = site.low.join("large/file").exists();
        let blocks = |path: &Path| fs::metadata(path).map_or(0, |found| found.blocks());
        assert!(!shares || blocks(&site.low.join("large/file")) == 0, "only where blocks can be shared");
    }

    #[test]
    fn what_a_killed_copier_left_goes_at_the_next_start() {
        let site = site();
        write(site.high.join("x"), "x", 0);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = |process: u32| site.places.root().join(format!(".bailiwick-{process}-7"));
        for process in [ended.id(), std::process::id()] {
            fs::write(left(process), "half").unwrap();
        }
        site.read_down();
        assert!(!left(ended.id()).exists() && left(std::process::id()).exists(), "another session copies");
        assert_eq!(site.low("x"), "x");
    }

    #[test]
    fn a_place_without_a_record_is_nobodys() {
        let site = site();
        write(site.high.join("x"), "x", 0);
        fs::remove_file(record(&site.low)).unwrap();
        assert!(site.places.read_down(&site.low, None).is_err());
        fs::write(record(&site.low), "{").unwrap();
        assert!(site.places.read_down(&site.low, None).is_err());
        let low = level(&["/p"], Network::Off, false);
        site.places.make(&low).unwrap();
        site.read_down();
        assert_eq!(site.low("x"), "x");
        assert_eq!(site.places.above(&low), [site.high]);
    }
}
