//! One record, as the kernel writes it: `audit(SECONDS.MILLIS:SERIAL): name=value name=value …`.
//!
//! Paths, and what programs call themselves, are anybody's choice. The kernel puts them between double quotes, or writes them in
//! hexadecimal where they hold a quote, a blank or anything that is not printable (`audit_log_untrustedstring` of
//! `kernel/audit.c`), so that no value has a blank. What does not look exactly so is no record.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use ipc::path::WirePath;
use ipc::recorded::RecordedAct;

/// `AUDIT_SYSCALL`, `AUDIT_LANDLOCK_ACCESS` and `AUDIT_LANDLOCK_DOMAIN` of linux/audit.h.
pub(super) const SYSCALL: u16 = 1300;
pub(super) const ACCESS: u16 = 1423;
pub(super) const DOMAIN: u16 = 1424;

/// The longest record that is looked at: a path of 4096 bytes in hexadecimal, and what stands around it.
const MAX_LINE: usize = 9 << 10;

/// A record that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) stamp: Stamp,
    pub(super) said: Said,
}

/// Which event a record belongs to: records of one have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// When it was, in milliseconds since 1970.
    pub(super) millis: u64,
    pub(super) serial: u64,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A domain refused an act on a file.
    Refused { domain: u64, act: RecordedAct, path: WirePath },
    /// Who made a domain; told once, with the first refusal.
    Made { domain: u64, process: u32, program: PathBuf },
    /// A call that failed, and who made it.
    Failed { errno: i32, process: u32, parent: u32, name: String, program: PathBuf },
}

impl Line {
    /// Reads a record; nothing, if it is of no concern or not as the kernel writes it.
    pub(super) fn parse(kind: u16, bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_LINE)?;
        let (stamp, rest) = text.strip_prefix("audit(")?.split_once("): ")?;
        let said = match kind {
            ACCESS => refused(rest),
            DOMAIN => made(rest),
            SYSCALL => failed(rest),
            _ => None,
        }?;
        Some(Self { stamp: Stamp::parse(stamp)?, said })
    }
}

impl Stamp {
    fn parse(text: &str) -> Option<Self> {
        let (time, serial) = text.split_once(':')?;
        let (seconds, millis) = time.split_once('.').filter(|(_, millis)| millis.len() == 3)?;
        let millis = number(seconds)?.checked_mul(1000)?.checked_add(number(millis)?)?;
        Some(Self { millis, serial: number(serial)? })
    }
}

/// `domain=HEX blockers=NAME,… path=PATH dev=DEVICE ino=NUMBER`, in this order (`security/landlock/audit.c`, and
/// `dump_common_audit_data` of `security/lsm_audit.c`). A refusal of a signal or of an address has other names.
fn refused(text: &str) -> Option<Said> {
    let mut fields = text.split(' ');
    let mut next = |name| value(fields.next()?, name);
    let domain = hexadecimal(next("domain")?)?;
    let act = act(next("blockers")?)?;
    let path = untrusted(next("path")?)?;
    untrusted(next("dev")?)?;
    number(next("ino")?)?;
    // What is no longer anywhere has a mark behind its name, and what never was has no name that begins at the root.
    let is_place = path.first() == Some(&b'/') && !path.ends_with(b" (deleted)") && !path.contains(&0);
    (fields.next().is_none() && is_place).then(|| Said::Refused { domain, act, path: place(path).into() })
}

/// `domain=HEX status=allocated mode=enforcing pid=NUMBER uid=NUMBER exe=PATH comm=NAME`.
fn made(text: &str) -> Option<Said> {
    let mut fields = text.split(' ');
    let mut next = |name| value(fields.next()?, name);
    let domain = hexadecimal(next("domain")?)?;
    if next("status")? != "allocated" || next("mode")? != "enforcing" {
        return None;
    }
    let process = process(next("pid")?)?;
    number(next("uid")?)?;
    let program = place(untrusted(next("exe")?)?);
    Some(Said::Made { domain, process, program })
}

/// `… success=no exit=-ERRNO … ppid=NUMBER pid=NUMBER … comm=NAME exe=PATH …`: the first of each name is the kernel's own, what
/// others chose comes behind.
fn failed(text: &str) -> Option<Said> {
    let first = |name| text.split(' ').find_map(|field| value(field, name));
    if first("success")? != "no" {
        return None;
    }
    Some(Said::Failed {
        errno: i32::try_from(number(first("exit")?.strip_prefix('-')?)?).ok()?,
        process: process(first("pid")?)?,
        parent: process(first("ppid")?)?,
        name: String::from_utf8_lossy(&untrusted(first("comm")?)?).into_owned(),
        program: place(untrusted(first("exe")?)?),
    })
}

/// What was tried, by the rights that were missing; nothing where one of them is not of opening or naming files.
fn act(blockers: &str) -> Option<RecordedAct> {
    let acts = blockers.split(',').map(|blocker| match blocker {
        "fs.execute" | "fs.read_file" | "fs.read_dir" => Some(RecordedAct::Read),
        "fs.write_file" | "fs.truncate" => Some(RecordedAct::Write),
        "fs.remove_dir" | "fs.remove_file" | "fs.make_dir" | "fs.make_reg" | "fs.make_sock"
        | "fs.make_fifo" | "fs.make_sym" | "fs.refer" => Some(RecordedAct::Name),
        _ => None,
    });
    let acts: Vec<_> = acts.collect::<Option<_>>()?;
    let is = |act| acts.contains(&act);
    [RecordedAct::Name, RecordedAct::Write, RecordedAct::Read].into_iter().find(|act| is(*act))
}

fn value<'a>(field: &'a str, name: &str) -> Option<&'a str> {
    field.strip_prefix(name)?.strip_prefix('=')
}

/// Digits alone: `u64` would take a sign as well.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn hexadecimal(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(text, 16).ok())?
}

fn process(text: &str) -> Option<u32> {
    u32::try_from(number(text)?).ok().filter(|number| *number > 0)
}

/// What stands between quotes, or is written in hexadecimal.
fn untrusted(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"').map(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) => {
            inner.filter(|inner| inner.bytes().all(is_plain)).map(|inner| inner.as_bytes().to_vec())
        }
        None if text.is_empty() => None,
        None => text.as_bytes().chunks(2).map(byte).collect(),
    }
}

/// What the kernel leaves as it is (`audit_string_contains_control`).
fn is_plain(byte: u8) -> bool {
    byte != b'"' && (0x21..=0x7e).contains(&byte)
}

fn byte(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*high)? << 4 | digit(*low)?)
}

fn place(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(kind: u16, rest: &str) -> Option<Said> {
        let line = Line::parse(kind, format!("audit(1795372480.299:3018): {rest}").as_bytes())?;
        assert_eq!(line.stamp, Stamp { millis: 1_795_372_480_299, serial: 3018 });
        Some(line.said)
    }

    /// As it stands in the records below.
    const DOMAIN_ID: u64 = 0x0001_4e45_7c10;

    fn refusal(act: RecordedAct, path: &str) -> Said {
        Said::Refused { domain: DOMAIN_ID, act, path: path.into() }
    }

    #[test]
    fn what_linux_6_18_writes_is_read() {
        let read = parse(
            ACCESS,
            r#"domain=14e457c10 blockers=fs.write_file path="/srv/plain" dev="vda" ino=10018986"#,
        );
        assert_eq!(read, Some(refusal(RecordedAct::Write, "/srv/plain")));
        let read = parse(
            DOMAIN,
            r#"domain=14e457c10 status=allocated mode=enforcing pid=29570 uid=0 exe="/usr/bin/x" comm="python3""#,
        );
        assert_eq!(
            read,
            Some(Said::Made { domain: DOMAIN_ID, process: 29570, program: "/usr/bin/x".into() })
        );
        let read = parse(
            SYSCALL,
            r#"arch=c000003e syscall=257 success=no exit=-13 a0=ffffff9c a1=7f54 a2=80241 a3=1b6 items=0 ppid=29523 pid=29570 auid=4294967295 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=(none) ses=4294967295 comm="rm" exe="/usr/bin/rm" key=(null)"#,
        );
        let name = "rm".to_owned();
        assert_eq!(
            read,
            Some(Said::Failed {
                errno: 13,
                process: 29570,
                parent: 29523,
                name,
                program: "/usr/bin/rm".into()
            })
        );
    }

    #[test]
    fn an_unusual_path_is_written_in_hexadecimal() {
        let read = parse(
            ACCESS,
            r#"domain=14e457c10 blockers=fs.make_reg,fs.refer path=2F6120220A dev="vda" ino=1"#,
        );
        assert_eq!(read, Some(refusal(RecordedAct::Name, "/a \"\n")));
    }

    #[test]
    fn a_call_that_succeeded_was_refused_nothing() {
        let line = |success, exit| {
            parse(SYSCALL, &format!("success={success} exit={exit} ppid=1 pid=2 comm=\"x\" exe=\"/x\""))
        };
        assert!(line("no", "-13").is_some());
        for (success, exit) in [("yes", "3"), ("yes", "-13"), ("no", "13"), ("no", "-"), ("no", "--1")] {
            assert_eq!(line(success, exit), None, "{success} {exit}");
        }
    }

    #[test]
    fn what_is_no_file_or_not_as_the_kernel_writes_it_is_none() {
        for rest in [
            r#"domain=1 blockers=scope.signal opid=1 ocomm="init""#,
            r"domain=1 blockers=net.connect_tcp daddr=127.0.0.1 dest=9",
            r#"domain=1 blockers=fs.ioctl_dev path="/dev/tty" dev="devtmpfs" ino=9 ioctlcmd=0x5401"#,
            r#"domain=1 blockers=fs.write_file,fs.new path="/a" dev="vda" ino=1"#,
            r#"domain=1 blockers=fs.make_char path="/a" dev="vda" ino=1"#,
            r#"domain=1 blockers=fs.write_file path="a" dev="vda" ino=1"#,
            r#"domain=1 blockers=fs.write_file path=2F6D656D66643A78202864656C6574656429 dev="tmpfs" ino=1"#,
            r#"domain=1 blockers=fs.write_file path="/a b" dev="vda" ino=1"#,
            r#"domain=1 blockers=fs.write_file path="/a" dev="vda" ino=1 more=1"#,
            r#"domain=1 blockers=fs.write_file path="/a" path="/b" dev="vda" ino=1"#,
            r#"domain=1 blockers=fs.write_file path=2F6 dev="vda" ino=1"#,
            r#"domain=1 blockers=fs.write_file path=2F61002F62 dev="vda" ino=1"#,
            r#"domain=+1 blockers=fs.write_file path="/a" dev="vda" ino=1"#,
            r#"domain= blockers=fs.write_file path="/a" dev="vda" ino=1"#,
            r"domain=1 blockers=fs.write_file path= dev= ino=1",
            r"domain=1 blockers=fs.write_file",
            "",
        ] {
            assert_eq!(parse(ACCESS, rest), None, "{rest}");
        }
        assert_eq!(parse(DOMAIN, "domain=1 status=deallocated denials=17"), None);
        assert_eq!(Line::parse(ACCESS, b"audit(1.2:3): domain=1"), None);
    }

    /// As `audit_log_untrustedstring` has it.
    fn written(bytes: &[u8]) -> String {
        use std::fmt::Write;
        if bytes.iter().copied().all(is_plain) {
            return format!("\"{}\"", String::from_utf8_lossy(bytes));
        }
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02X}").unwrap();
            text
        })
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(kind in 1299..1426_u16, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Line::parse(kind, &bytes);
        }

        #[test]
        fn no_path_and_no_name_is_taken_for_anything_else(
            path in prop::collection::vec(1..=255_u8, 0..64),
            name in prop::collection::vec(1..=255_u8, 1..16),
        ) {
            let path = [b"/".as_slice(), &path].concat();
            prop_assume!(!path.ends_with(b" (deleted)"));
            let rest = format!("domain=14e457c10 blockers=fs.read_file path={} dev=\"x\" ino=1", written(&path));
            let read = parse(ACCESS, &rest);
            let wanted = Said::Refused {
                domain: DOMAIN_ID,
                act: RecordedAct::Read,
                path: place(path).into(),
            };
            prop_assert_eq!(read, Some(wanted));
            let rest = format!(
                "success=no exit=-13 ppid=1 pid=2 comm={} exe={}",
                written(&name),
                written(b"/x pid=7")
            );
            let wanted = Said::Failed {
                errno: 13,
                process: 2,
                parent: 1,
                name: String::from_utf8_lossy(&name).into_owned(),
                program: "/x pid=7".into(),
            };
            prop_assert_eq!(parse(SYSCALL, &rest), Some(wanted));
        }
    }
}
