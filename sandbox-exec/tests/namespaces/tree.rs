//! Tests of the file tree in the full tier: its owner, hidden paths, and the directories that the tier replaces.

use std::fs;
use std::path::Path;

use ipc::confinement::Confinement;

use crate::common::place::text;
use crate::run::{in_full, run, said};

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap()
}

#[test]
fn the_hosts_mounts_stay_as_they_are() {
    in_full(|place| {
        let before = mounts();
        let script = "touch a; cat /proc/self/mountinfo";
        let inside = said(place, |_| {}, script);
        assert_eq!(mounts(), before);
        assert!(inside.contains(" /tmp ") && !before.contains(" /tmp "), "{inside}");
        assert!(place.path("project/a").exists());
    });
}

#[test]
fn no_mount_can_be_taken_off_or_made_writable() {
    in_full(|place| {
        for script in [
            "mount -o remount,rw /",
            "mount -o remount,bind,rw /",
            "umount /proc",
            "umount -l /tmp",
            "mount --bind /home /mnt",
            "mount -t tmpfs x /mnt",
            "unshare -Ur true",
            "unshare -m true",
            "echo x > /proc/sys/kernel/hostname",
            "echo x > /dev/new",
            "chmod 777 /dev /",
        ] {
            let (output, _) = run(place, |_| {}, script);
            assert!(!output.status.success(), "{script}: {}", text(&output));
        }
    });
}

#[test]
fn what_is_hidden_has_no_names_sizes_or_targets() {
    in_full(|place| {
        place.make("project/.env", "CANARY-12345");
        place.make("project/deep/secret/name", "CANARY");
        let link = place.path("project/link");
        std::os::unix::fs::symlink("deep/secret/name", &link).unwrap();
        let hide = |order: &mut Confinement| {
            order.rights.hidden = ["project/.env", "project/deep/secret", "project/link", "home/secret"]
                .map(|name| place.path(name).into())
                .into();
        };
        for (script, unconfined) in [
            ("cat .env", "CANARY-12345"),
            ("stat -c %s .env", "12"),
            ("ls deep/secret", "name"),
            ("cat deep/secret/name", "CANARY"),
            ("readlink link", "name"),
            ("chmod 700 deep/secret && ls deep/secret", "name"),
            ("mv deep d2; cat d2/secret/name d2/name", "CANARY"),
            ("mv .env e; cat e", "CANARY"),
            ("ln .env e; cat e", "CANARY"),
            ("rm -rf deep; git init -q .; cat deep/secret/name", "CANARY"),
        ] {
            let (output, _) = run(place, hide, script);
            assert!(!text(&output).contains(unconfined), "{script}: {}", text(&output));
            drop(place.unconfined("mv d2 deep"));
            assert_eq!(
                fs::read_to_string(place.path("project/deep/secret/name")).unwrap(),
                "CANARY",
                "{script}"
            );
            assert_eq!(fs::read_to_string(place.path("project/.env")).unwrap(), "CANARY-12345", "{script}");
        }
        assert_eq!(
            text(&place.unconfined("cat .env; ls deep/secret; readlink link")),
            "CANARY-12345name\ndeep/secret/name\n"
        );
    });
}

#[test]
fn tmp_shared_memory_and_terminals_are_its_own() {
    in_full(|place| {
        let script = "mktemp > /dev/null && echo x > /dev/shm/x && ls /dev/shm && ls /tmp && echo $TMPDIR && \
                      cp /bin/true /tmp/of-the-sandbox && /tmp/of-the-sandbox && stat -c %a /dev/shm && : < /dev/ptmx && ls /dev/pts";
        let output = said(place, |order| order.rights.net = ipc::rights::Network::Off, script);
        let name = place.path("").file_name().unwrap().to_str().unwrap().to_owned();
        let lines: Vec<_> = output.lines().filter(|line| !line.starts_with("tmp.")).collect();
        assert_eq!(lines, ["x", &name, "/tmp", "1777", "ptmx"], "{output}");
        assert!(!Path::new("/dev/shm/x").exists() && !Path::new("/tmp/of-the-sandbox").exists());
        assert!(place.path("temp/of-the-sandbox").exists());
    });
}

#[test]
fn a_link_planted_in_the_temp_directory_is_not_followed() {
    in_full(|place| {
        place.make("outside/keep", "");
        let name = place.path("").file_name().unwrap().to_str().unwrap().to_owned();
        place.make("temp/.keep", "");
        std::os::unix::fs::symlink(place.path("outside"), place.path("temp").join(&name)).unwrap();
        assert_eq!(said(place, |_| {}, "cat keep"), "mine");
        assert_eq!(place.contents("outside").len(), 2, "nothing was made there");
    });
}
