use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Place, in_the_floor, pipe};

/// Script that creates files of every kind, with special modes, times and attributes.
const SOURCE: &str = "umask 022; mkdir -p s/d/e; echo one > s/f; ln s/f s/hard; ln -s f s/link; ln -s /nowhere s/dangling
    mkfifo s/fifo; echo 'echo run' > s/d/run; chmod 751 s/f; chmod 700 s/d/run; chmod 500 s/d/e; chmod 1777 s/d
    python3 -c 'import os; os.setxattr(\"s/f\", \"user.name\", b\"value\")'
    touch -h -d @7.123456789 s/link s/dangling; touch -d @86400.5 s/f s/fifo s/d/run s/d/e s/d s";

/// Script that lists files: names, kinds, modes, owners, times to the nanosecond, link targets and attributes.
const LIST: &str = "touch -d @3 .; find . -printf '%p %y %m %U %G %T@ %l\\n' | sort
    python3 -c 'import os
for top, _, files in os.walk(\".\"):
    for f in files:
        p = os.path.join(top, f); print(p, sorted((a, os.getxattr(p, a)) for a in os.listxattr(p, follow_symlinks=False)) if not os.path.islink(p) else [])' | sort";

fn run(directory: &Path, script: &str) -> String {
    let output = Command::new("/bin/sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("GIT_CONFIG_NOSYSTEM", "1"), ("TZ", "UTC")])
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    format!("{text}{}", output.status)
}

fn without(place: &Place, name: &str, script: &str) -> String {
    let directory = fresh(place, name);
    let (mut told, mut tell) = pipe();
    place.unmediated(|| {
        run(&directory, SOURCE);
        write!(tell, "{}", run(&directory, script)).unwrap();
    });
    drop(tell);
    let mut text = String::new();
    told.read_to_string(&mut text).unwrap();
    text
}

fn fresh(place: &Place, name: &str) -> std::path::PathBuf {
    let directory = place.path(name);
    fs::create_dir(&directory).unwrap();
    chown(&directory, place.user(), place.user()).unwrap();
    directory
}

fn leaves_the_same(script: &str) {
    in_the_floor(|place| {
        let script = format!("{script}\n{LIST}");
        let expected = without(place, "in/without", &script);
        if expected.ends_with("exit status: 127") {
            return eprintln!("skipped: not on this machine: {expected}");
        }
        assert!(expected.ends_with("exit status: 0"), "{expected}");
        let directory = fresh(place, "in/with");
        place.with_metadata(|| {
            run(&directory, SOURCE);
            assert_eq!(run(&directory, &script), expected);
        });
    });
}

#[test]
fn copying_keeps_everything() {
    leaves_the_same("cp -a s c; rm -r s");
}

#[test]
fn archives_are_unpacked_as_they_were_packed() {
    leaves_the_same("tar --xattrs -cf - s | (mkdir t; tar --xattrs -xpf - -C t); rm -r s; touch -d @3 t");
}

#[test]
fn python_copies_and_unpacks() {
    leaves_the_same(
        "rm s/fifo; python3 -c '
import os, shutil, zipfile
shutil.copytree(\"s\", \"c\", symlinks=True)
shutil.copystat(\"s/f\", \"s/d/run\")
os.utime(\"s/link\", (9, 9), follow_symlinks=False)
with open(\"s/f\") as f:
    os.fchmod(f.fileno(), 0o604); os.utime(f.fileno(), ns=(5, 6))
os.utime(\"s/f\", (1e9, 1e9))
z = zipfile.ZipFile(\"z.zip\", \"w\"); z.write(\"s/f\"); z.close()
zipfile.ZipFile(\"z.zip\").extractall(\"x\")
os.remove(\"z.zip\")
for top, dirs, files in os.walk(\"x\", topdown=False):
    for name in files + dirs: os.utime(os.path.join(top, name), (3, 3))
for name in \"scx\": os.utime(name, (3, 3))'",
    );
}

#[test]
fn installing_and_touching() {
    leaves_the_same(
        "install -d -m 750 i/bin; install -p -m 711 s/d/run i/bin/run; touch -r s/f i/bin i; touch -d @3 s/d/run
         chmod -R go-w,u+X s; chown -R $(id -u):$(id -g) s; mkdir -m 700 n; touch -d @5 n",
    );
}

#[test]
fn git_keeps_what_may_be_executed() {
    leaves_the_same(
        "rm -r s/d/e s/fifo; git init -q r; cp -a s/. r; cd r; git config user.name n; git config user.email e@x
         git add .; git commit -qm m; rm f d/run; git checkout -q .
         git clone -q . ../k; cd ..; stat -c '%n %a' k/f k/d/run r/f r/d/run; rm -rf r k s",
    );
}

#[test]
fn node_changes_modes_times_and_copies() {
    leaves_the_same(
        "rm s/fifo; node -e '
const fs = require(\"fs\");
fs.cpSync(\"s\", \"c\", { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
fs.chmodSync(\"s/f\", 0o604); fs.utimesSync(\"s/f\", 5, 6); fs.lutimesSync(\"s/link\", 5, 6);
const f = fs.openSync(\"s/d/run\", \"r\"); fs.fchmodSync(f, 0o711); fs.futimesSync(f, 8, 9);
fs.lchownSync(\"s/link\", process.getuid(), process.getgid());'
         touch -d @5 c c/d c/d/e s s/d; touch -h -d @5 c/link c/dangling",
    );
}
