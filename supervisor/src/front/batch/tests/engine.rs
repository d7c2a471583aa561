use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::super::engine::{Container, Engine, is_image, swe_bench_image};
use crate::settings::args::EngineArg;

fn programs() -> tempfile::TempDir {
    let programs = tempfile::tempdir().unwrap();
    for name in ["bailiwick", "bailiwick-worker", "sandbox-exec"] {
        fs::write(programs.path().join(name), "").unwrap();
    }
    programs
}

fn line(engine: &Engine, programs: &Path) -> String {
    let container = Container {
        image: "docker.io/x/y:latest",
        name: "a__b-1.2".to_owned(),
        project: "/testbed",
        relay: "/o/relays/3/run".into(),
        out: "/o/work/a__b-1.2/out".into(),
    };
    let line = engine.run(&container, vec!["--mode=auto".into(), "-".into()]);
    let text = line.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join("\n");
    text.replace(&programs.canonicalize().unwrap().display().to_string(), "PROGRAMS")
}

#[test]
fn a_container_has_no_network_and_programs_that_it_cannot_change() {
    let programs = programs();
    let engine = |kind, uid| Engine::new(kind, programs.path(), Path::new("/o"), uid, 7).unwrap().unwrap();
    insta::assert_snapshot!(line(&engine(EngineArg::Docker, 0), programs.path()));
    let podman = line(&engine(EngineArg::Podman, 0), programs.path());
    assert!(podman.contains("\n--passwd=false\n"), "{podman}");
    let podman = podman.replace("--passwd=false\n", "");
    assert_eq!(podman, line(&engine(EngineArg::Docker, 0), programs.path()));
    // The files belong to the user of the image, so the container gives them to the person, or the right to read them.
    let [docker, podman] =
        [EngineArg::Docker, EngineArg::Podman].map(|kind| line(&engine(kind, 1000), programs.path()));
    let opened = "chmod -R a+rwX /bailiwick-out; exit $status";
    let given = format!("\"$@\"; status=$?; chown -R 1000:7 /bailiwick-out 2>/dev/null || {opened}");
    assert!(docker.contains(&given), "{docker}");
    assert!(podman.contains(&format!("\"$@\"; status=$?; {opened}")), "{podman}");
}

#[test]
fn containers_of_a_batch_are_found_by_its_label_and_removed_by_their_names() {
    let programs = programs();
    let engine =
        |root| Engine::new(EngineArg::Docker, programs.path(), Path::new(root), 0, 0).unwrap().unwrap();
    let (one, other) = (engine("/one"), engine("/other"));
    assert_ne!(one.list(), other.list());
    let name: OsString = one.container_name("t.1").into();
    assert!(one.remove("t.1").contains(&name));
    assert!(line(&one, programs.path()).contains(&one.container_name("a__b-1.2")));
}

#[test]
fn an_engine_needs_the_programs_and_paths_that_a_mount_can_name() {
    let empty = tempfile::tempdir().unwrap();
    let fault = |programs: &Path, root: &str| {
        Engine::new(EngineArg::Docker, programs, Path::new(root), 0, 0).unwrap_err().to_string()
    };
    assert!(fault(empty.path(), "/o").contains("has no bailiwick: containers need"));
    assert!(fault(programs().path(), "/o,readonly=false").contains("a comma"));
    assert!(Engine::new(EngineArg::None, empty.path(), Path::new("/o"), 0, 0).unwrap().is_none());
}

#[test]
fn names_of_images_are_names() {
    let name = swe_bench_image("Foo__bar-1");
    assert_eq!(name, "docker.io/swebench/sweb.eval.x86_64.foo_1776_bar-1:latest");
    assert!(is_image(&name) && is_image("localhost:5000/a@sha256:0"));
    for text in ["", "-v", "/a", "a b", "a\n", "ä", "a;b", &"a".repeat(256)] {
        assert!(!is_image(text), "{text:?}");
    }
}
