//! Restrictions that the machine has without the sandbox. They are not denials.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use ipc::path::WirePath;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Mount points in the order of mounting, each with true if it is read-only.
    mounts: Vec<(WirePath, bool)>,
    /// Hidden paths that the user could not read without the sandbox either, because of their modes.
    closed: Vec<WirePath>,
    root: bool,
    /// The user's capabilities, one bit each; `None` if another seccomp filter applies to this process.
    powers: Option<u64>,
    io_uring: bool,
    variables: BTreeSet<String>,
}

impl Machine {
    /// Reads the mounts in `mountinfo`, the text of `/proc/self/mountinfo`. `root` is true if the user is root.
    pub fn new(mountinfo: &[u8], closed: Vec<WirePath>, root: bool) -> Self {
        let mounts = mountinfo.split(|&byte| byte == b'\n').filter_map(mount).collect();
        Self { mounts, closed, root, powers: None, io_uring: false, variables: BTreeSet::new() }
    }

    /// Adds the capabilities that the text of `/proc/self/status` has (`proc_pid_status(5)`). Adds none if it says that
    /// a seccomp filter was active already.
    #[must_use]
    pub fn with_powers(self, status: &str) -> Self {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let capabilities = field("CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
        Self { powers: capabilities.filter(|_| field("Seccomp:") == Some("0")), ..self }
    }

    /// Records if the kernel offers `io_uring`. `disabled` is the text of `/proc/sys/kernel/io_uring_disabled`, a file
    /// since Linux 6.6; `None` if that file does not exist.
    #[must_use]
    pub fn with_io_uring(self, disabled: Option<&str>) -> Self {
        Self { io_uring: disabled.is_some_and(|text| text.trim() == "0"), ..self }
    }

    #[must_use]
    pub fn with_variables(self, names: impl IntoIterator<Item = OsString>) -> Self {
        let variables = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        Self { variables, ..self }
    }

    pub fn has_variable(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    pub const fn has_io_uring(&self) -> bool {
        self.io_uring
    }

    /// True if the machine permits a system call. `capability` is the capability that the call needs, if any.
    pub fn permits(&self, capability: Option<u8>) -> bool {
        self.powers.is_some_and(|powers| capability.is_none_or(|number| powers >> number & 1 == 1))
    }

    pub const fn is_of_root(&self) -> bool {
        self.root
    }

    pub fn is_read_only(&self, path: &WirePath) -> bool {
        let depth = |place: &WirePath| place.as_path().components().count();
        // The last mount at a path covers earlier ones, and `max_by_key` returns the last.
        let over = self.mounts.iter().filter(|(place, _)| path.is_within(place));
        over.max_by_key(|(place, _)| depth(place)).is_some_and(|(_, read_only)| *read_only)
    }

    /// True if the modes of files keep the user from reading a hidden path.
    pub fn closes(&self, path: &WirePath) -> bool {
        self.closed.iter().any(|place| path.is_within(place))
    }
}

/// Parses a line of mountinfo: `ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [TAG]… - TYPE SOURCE OPTIONS`. Returns the
/// mount point, and true if the options of the mount or of its file system make it read-only.
fn mount(line: &[u8]) -> Option<(WirePath, bool)> {
    let fields: Vec<_> = line.split(|&byte| byte == b' ').collect();
    let separator = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let is_read_only = |options: &[u8]| options.split(|&byte| byte == b',').any(|option| option == b"ro");
    let place = PathBuf::from(OsString::from_vec(unescaped(fields.get(4)?)));
    let own = is_read_only(fields.get(5)?);
    let whole = fields.get(separator + 3).is_some_and(|options| is_read_only(options));
    Some((place.into(), own || whole))
}

/// Decodes blanks and backslashes, which are written as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"29 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        30 29 7:1 / /snap ro,relatime shared:1 - squashfs /dev/loop1 ro\n\
        31 29 254:1 / /mnt/a\\040b rw,relatime - iso9660 /dev/sr0 ro\n\
        32 29 254:0 /srv /srv ro,relatime - ext4 /dev/vda rw\n\
        33 32 0:40 / /srv/scratch rw - tmpfs tmpfs rw\n\
        34 29 254:0 / /over ro - ext4 /dev/vda rw\n\
        35 34 0:41 / /over rw - tmpfs tmpfs rw\n\
        broken line\n";

    #[test]
    fn the_mount_over_a_path_is_the_nearest_and_the_last() {
        let machine = Machine::new(MOUNTS, Vec::new(), false);
        for path in ["/snap", "/snap/x", "/mnt/a b/x", "/srv/x"] {
            assert!(machine.is_read_only(&path.into()), "{path}");
        }
        for path in ["/", "/etc/x", "/snapper", "/srv/scratch/x", "/over/x"] {
            assert!(!machine.is_read_only(&path.into()), "{path}");
        }
        assert!(!Machine::default().is_read_only(&"/snap".into()), "nothing is known");
    }

    #[test]
    fn what_a_call_takes_is_known_of_who_is_not_filtered() {
        let of = |status: &str| Machine::default().with_powers(status);
        let root = of("Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\nSeccomp_filters:\t0\n");
        assert!(root.permits(Some(21)) && root.permits(None));
        let plain = of("CapEff:\t0000000000000000\nSeccomp:\t0\n");
        assert!(!plain.permits(Some(21)) && plain.permits(None));
        for unknown in ["CapEff:\t000001ffffffffff\nSeccomp:\t2\n", "CapEff:\t000001ffffffffff\n", ""] {
            assert!(!of(unknown).permits(None), "{unknown}");
        }
    }

    #[test]
    fn a_closed_place_is_closed_with_all_that_is_in_it() {
        let machine = Machine::new(b"", vec!["/etc/shadow".into(), "/root".into()], false);
        assert!(machine.closes(&"/etc/shadow".into()) && machine.closes(&"/root/.ssh/id".into()));
        assert!(!machine.closes(&"/etc".into()));
    }
}
