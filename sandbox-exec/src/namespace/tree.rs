//! File tree of a program in the full tier, built in a new mount namespace on a copy of the host's mounts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ipc::path::WirePath;
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::chdir;

use super::devices::{self, Nodes};
use super::layout::{Layout, NamespaceRoot, TMP};
use super::machine::FileSystems;
use super::masks::Masks;
use super::mount::{self, Attributes, Reach};
use super::{hidden, own_tmp, protected};

#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {path}: {source}")]
pub(crate) struct TreeError {
    act: &'static str,
    path: WirePath,
    source: io::Error,
}

pub(super) fn at(act: &'static str, path: &Path) -> impl Fn(io::Error) -> TreeError {
    move |source| TreeError { act, path: path.into(), source }
}

#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) path: PathBuf,
    pub(super) mount: OwnedFd,
    pub(super) directory: bool,
    writable: bool,
}

impl Mounted {
    fn copied(NamespaceRoot { path, writable }: &NamespaceRoot) -> Result<Self, TreeError> {
        let place = mount::open(path).map_err(at("open the root", path))?;
        let kind = fstat(&place).map_err(|errno| at("look at the root", path)(errno.into()))?.st_mode;
        let directory = SFlag::from_bits_truncate(kind & SFlag::S_IFMT.bits()) == SFlag::S_IFDIR;
        let mount = mount::copy(place.as_fd(), Reach::Tree).map_err(at("copy the mount of", path))?;
        Ok(Self { path: path.clone(), mount, directory, writable: *writable })
    }

    /// Copies the mounts of sockets. Skips a missing socket, since the server that created it may have ended.
    fn of_sockets(paths: &[PathBuf]) -> Vec<Self> {
        let roots = paths.iter().map(|path| NamespaceRoot { path: path.clone(), writable: false });
        roots.filter_map(|root| Self::copied(&root).ok()).collect()
    }

    fn attributes(&self) -> Attributes {
        match (self.writable, self.path.starts_with("/dev")) {
            (false, _) => Attributes::READ_ONLY,
            (true, false) => Attributes::WRITABLE,
            (true, true) => Attributes::DEVICES,
        }
    }
}

impl Mounted {
    fn attach(&self) -> Result<(), TreeError> {
        mount::restrict(self.mount.as_fd(), self.attributes(), Reach::Tree)
            .map_err(at("restrict", &self.path))?;
        attach(&self.mount, &self.path)
    }
}

/// Builds the program's file tree. Returns the program's `/dev` on a second mount, which is writable, so that only
/// Landlock denies writing there.
pub(crate) fn build(layout: &Layout, own: FileSystems) -> Result<OwnedFd, TreeError> {
    let nodes = Nodes::copied(layout.terminal)?;
    let mut roots = layout.roots.iter().map(Mounted::copied).collect::<Result<Vec<_>, _>>()?;
    roots.extend(Mounted::of_sockets(&layout.sockets));
    let windows = Mounted::of_sockets(&layout.windows);
    let tmp = layout.tmp.iter().map(|path| NamespaceRoot { path: path.clone(), writable: true });
    let tmp = tmp.map(|root| Mounted::copied(&root)).next().transpose()?;

    let root = Path::new("/");
    let here = mount::open(root).map_err(at("open", root))?;
    mount::restrict(here.as_fd(), Attributes::READ_ONLY, Reach::Tree).map_err(at("make read-only", root))?;

    let masks = Masks::mounted(own.masks, open("/dev")?.as_fd()).map_err(at("mount", Path::new("/dev")))?;
    attach(&own.dev, Path::new("/dev"))?;
    let witness = furnish_dev(&own.dev, nodes)?;
    attach(&own.pts, Path::new("/dev/pts"))?;
    attach(&own.shm, Path::new("/dev/shm"))?;
    own.mqueue.iter().try_for_each(|queues| attach(queues, Path::new("/dev/mqueue")))?;
    attach_roots(&own.dev, tmp, roots)?;
    let dev = Path::new("/dev");
    mount::restrict(own.dev.as_fd(), Attributes::DATA, Reach::Mount).map_err(at("make read-only", dev))?;
    attach(&own.proc, Path::new("/proc"))?;
    for (path, by) in &layout.resolving {
        masks.replace(path, by).map_err(at("replace", path))?;
    }
    let hidden = hidden::places(&layout.hidden)?;
    protected::protect(&layout.protected, &layout.held(&hidden))?;
    for path in &hidden {
        let is_inside = |window: &PathBuf| window != path && window.starts_with(path);
        let has_window = layout.windows.iter().any(is_inside);
        let covered = if has_window { masks.cover_but_windows(path) } else { masks.cover(path) };
        covered.map_err(at("cover", path))?;
    }
    windows.iter().try_for_each(Mounted::attach)?;
    chdir(root).map_err(|errno| at("enter", root)(errno.into()))?;
    Ok(witness)
}

fn open(path: &str) -> Result<OwnedFd, TreeError> {
    mount::open(Path::new(path)).map_err(at("open", Path::new(path)))
}

fn attach(mount: &OwnedFd, path: &Path) -> Result<(), TreeError> {
    mount::open(path).and_then(|place| mount::attach(mount.as_fd(), place.as_fd())).map_err(at("mount", path))
}

fn furnish_dev(dev: &OwnedFd, nodes: Nodes) -> Result<OwnedFd, TreeError> {
    let failed = at("furnish", Path::new("/dev"));
    devices::furnish(dev.as_fd()).map_err(&failed)?;
    nodes.attach(dev.as_fd())?;
    mount::copy(dev.as_fd(), Reach::Mount).map_err(failed)
}

/// Attaches the roots. If there is a private temp directory, those below `/tmp` are attached in it.
fn attach_roots(dev: &OwnedFd, tmp: Option<Mounted>, roots: Vec<Mounted>) -> Result<(), TreeError> {
    let tmp = tmp
        .map(|tmp| {
            mount::restrict(tmp.mount.as_fd(), tmp.attributes(), Reach::Tree)
                .map_err(at("restrict", &tmp.path))?;
            attach(&tmp.mount, Path::new(TMP))?;
            open(TMP)
        })
        .transpose()?;
    for root in roots {
        mount::restrict(root.mount.as_fd(), root.attributes(), Reach::Tree)
            .map_err(at("restrict", &root.path))?;
        match (&tmp, root.path.strip_prefix(TMP)) {
            (Some(tmp), Ok(name)) => own_tmp::place(tmp.as_fd(), name, root.directory)
                .and_then(|place| mount::attach(root.mount.as_fd(), place.as_fd()))
                .map_err(at("mount", &root.path))?,
            _ if root.path.starts_with("/dev") => devices::grant(dev.as_fd(), &root)?,
            _ => attach(&root.mount, &root.path)?,
        }
    }
    Ok(())
}
