//! Checks before a batch in containers: the requirements of SWE-bench, and the free resources.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use nix::sys::statvfs::statvfs;
use nix::sys::sysinfo::sysinfo;

use super::engine::Engine;
use super::task::{BatchTask, TaskSource};

/// Disk space in bytes that the SWE-bench harness recommends.
const DISK: u64 = 120 << 30;

/// Average size in bytes of one instance's image, without the shared layers. [`DISK`] suffices for SWE-bench Verified.
const IMAGE: u64 = DISK / 500;

/// Memory in bytes that the SWE-bench harness recommends.
const MEMORY: u64 = 16 << 30;

/// Number of processors that the SWE-bench harness recommends.
const PROCESSORS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchMachine {
    pub is_x86_64: bool,
    /// Free bytes on the file system with the engine's images.
    pub disk: u64,
    pub memory: u64,
    pub processors: usize,
}

impl BatchMachine {
    /// Examines this machine. `images` is the directory in which the engine keeps images.
    pub(super) fn here(images: &Path) -> Self {
        let disk = statvfs(images).map_or(0, |stat| stat.blocks_available() * stat.fragment_size());
        Self {
            is_x86_64: cfg!(target_arch = "x86_64"),
            disk,
            memory: sysinfo().map_or(0, |info| info.ram_total()),
            processors: available_parallelism().map_or(1, Into::into),
        }
    }

    pub(super) fn images_of(engine: &Engine) -> PathBuf {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let places = match engine.program {
            "docker" => vec![PathBuf::from("/var/lib/docker")],
            _ => vec![home.join(".local/share/containers"), PathBuf::from("/var/lib/containers")],
        };
        places.into_iter().find(|place| place.is_dir()).unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Returns the reason why no task can run on this machine; `None` if tasks can run.
    pub(super) fn refusal(self) -> Option<&'static str> {
        (!self.is_x86_64).then_some("the images of SWE-bench are for x86_64, which this machine is not")
    }

    /// Returns advice for each resource that is too small for this number of tasks, or for `jobs` tasks at a time.
    pub(super) fn shortfalls(self, tasks: usize, jobs: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let wanted = IMAGE.saturating_mul(tasks as u64).min(DISK);
        if self.disk < wanted {
            let fit = self.disk / IMAGE;
            let (free, wanted) = (gib(self.disk), gib(wanted));
            lines.push(format!(
                "only {free} GiB are free for images, and {tasks} tasks need about {wanted} GiB\n  hint: use --slice 0:{fit}, and remove the images of that slice before the next one"
            ));
        }
        // A machine with half the recommended size runs half as many jobs.
        let fit = usize::try_from(self.memory / (MEMORY / PROCESSORS as u64)).unwrap_or(usize::MAX);
        let fit = fit.min(self.processors).max(1);
        if jobs > fit {
            let memory = gib(self.memory);
            lines.push(format!(
                "this machine has {memory} GiB of memory and {} processors, and each task can use 2 GiB and one processor\n  hint: use --jobs {fit}",
                self.processors
            ));
        }
        lines
    }
}

/// Returns the number of tasks whose image is missing from the engine's list.
pub(super) fn missing(tasks: &[BatchTask], listed: &str) -> usize {
    let has: HashSet<String> = listed.lines().map(whole).collect();
    let is_missing = |task: &&BatchTask| match &task.source {
        // A list of names does not show whether an image with this digest is there.
        TaskSource::Image { image, .. } => !image.contains('@') && !has.contains(&whole(image)),
        TaskSource::Copy { .. } | TaskSource::Commit { .. } => false,
    };
    tasks.iter().filter(is_missing).count()
}

/// Returns an image name in the form common to both engines: without the default registry, and with a tag.
fn whole(name: &str) -> String {
    let usual = ["docker.io/library/", "docker.io/", "localhost/"];
    let name = usual.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    if has_tag { name.to_owned() } else { format!("{name}:latest") }
}

fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: BatchMachine =
        BatchMachine { is_x86_64: true, disk: DISK, memory: MEMORY, processors: PROCESSORS };

    #[test]
    fn what_is_short_is_named_with_what_fits() {
        assert!(ENOUGH.shortfalls(500, 8).is_empty());
        assert!(ENOUGH.shortfalls(731, 8).is_empty(), "the harness asks for no more");
        let small = BatchMachine { disk: 12 << 30, memory: 8 << 30, processors: 2, ..ENOUGH };
        assert_eq!(
            small.shortfalls(500, 4),
            [
                "only 12 GiB are free for images, and 500 tasks need about 120 GiB\n  hint: use --slice 0:50, and remove the images of that slice before the next one",
                "this machine has 8 GiB of memory and 2 processors, and each task can use 2 GiB and one processor\n  hint: use --jobs 2",
            ]
        );
        assert!(small.shortfalls(50, 2).is_empty(), "a slice that fits is not complained about");
    }

    #[test]
    fn images_that_are_there_take_no_more_room() {
        let task = |image: &str| BatchTask {
            id: image.to_owned(),
            prompt: String::new(),
            source: TaskSource::Image { image: image.to_owned(), project: "/testbed".to_owned() },
            limits: crate::front::batch::task::TaskLimits::default(),
        };
        let names =
            ["docker.io/swebench/a:latest", "swebench/b", "own:1", "reg:5000/x/y", "a/b@sha256:00", "debian"];
        let tasks = names.map(task);
        assert_eq!(missing(&tasks, ""), 5);
        assert_eq!(
            missing(&tasks, "swebench/a:latest\nlocalhost/own:1\ndocker.io/library/debian:latest\n"),
            2
        );
        assert_eq!(
            missing(&tasks, "docker.io/swebench/b:latest\nreg:5000/x/y:latest\nown:2\n<none>:<none>\n"),
            3
        );
    }

    #[test]
    fn another_architecture_is_refused() {
        assert_eq!(ENOUGH.refusal(), None);
        assert!(BatchMachine { is_x86_64: false, ..ENOUGH }.refusal().is_some());
    }
}
