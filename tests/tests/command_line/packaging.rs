//! Tests all that is distributed with the programs: completions, manual pages, and the installation script.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use tests::programs::{Programs, copy_program};
use tests::{Finished, User, World};

/// Returns the commands that `--help` lists.
fn commands(world: &World) -> Vec<String> {
    let help = Finished::of(&mut world.bailiwick(["--help"])).expect(0).stdout;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_a_manual_page_and_completions() {
    let world = World::new(User::Myself);
    let (commands, pages) = (commands(&world), world.root().join("pages"));
    assert!(commands.len() > 10, "{commands:?}");
    Finished::of(world.bailiwick(["debug", "man"]).arg(&pages)).expect(0);
    let bash = Finished::of(&mut world.bailiwick(["completions", "bash"])).expect(0).stdout;
    for command in &commands {
        let page = fs::read_to_string(pages.join(format!("bailiwick-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
        assert!(bash.contains(&format!("bailiwick,{command})")), "{command}");
    }
    assert!(!pages.join("bailiwick-debug.1").exists());
    for shell in ["zsh", "fish"] {
        let script = Finished::of(&mut world.bailiwick(["completions", shell])).expect(0).stdout;
        assert!(script.contains("exec") && script.contains("max-usd"), "{shell}");
    }
    // The completions that bash itself computes, for a word and for a flag.
    let file = world.file("completions.bash", &bash);
    for (line, expected) in [("bailiwick sess", "sessions"), ("bailiwick exec --max-u", "--max-usd")] {
        let words: Vec<_> = line.split(' ').collect();
        let quoted = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let (current, before) = (words[words.len() - 1], words[words.len() - 2]);
        let script = format!(
            ". {}; COMP_WORDS=({quoted}); COMP_CWORD={}; _bailiwick bailiwick '{current}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.len() - 1
        );
        let completed = Finished::of(world.command("bash").args(["-c", &script])).expect(0).stdout;
        assert_eq!(completed.trim(), expected, "{line}");
    }
}

/// Creates a directory like an unpacked archive of `packaging/build`, with the tested programs.
fn unpacked(world: &World) -> std::path::PathBuf {
    let archive = world.root().join("archive");
    fs::create_dir_all(archive.join("lib/bailiwick")).unwrap();
    fs::create_dir_all(archive.join("share/man/man1")).unwrap();
    for program in ["bailiwick", "bailiwick-worker", "sandbox-exec"] {
        copy_program(&Programs::get().path(program), &archive.join("lib/bailiwick").join(program));
    }
    fs::write(archive.join("share/man/man1/bailiwick.1.gz"), "").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/install.sh");
    fs::copy(script, archive.join("install.sh")).unwrap();
    archive
}

#[test]
fn what_is_installed_runs_and_is_replaced_whole() {
    let world = World::new(User::Myself);
    let archive = unpacked(&world);
    let prefix = world.root().join("a prefix");
    let install = || {
        let mut install = world.command("sh");
        install.arg(archive.join("install.sh")).arg(&prefix);
        Finished::of(&mut install).expect(0)
    };
    let first = install();
    assert!(first.stdout.contains("next: bailiwick doctor"), "{}", first.stdout);
    assert!(prefix.join("share/man/man1/bailiwick.1.gz").exists());
    // A file of an older version that the newer one lacks.
    fs::write(prefix.join("lib/bailiwick/old"), "").unwrap();
    install();
    assert!(!prefix.join("lib/bailiwick/old").exists());
    let demo = Finished::of(world.command(prefix.join("bin/bailiwick")).arg("demo"));
    assert_eq!(demo.code, 0, "{}", demo.stderr);
    // Started by a link of the person's.
    let link = world.root().join("link");
    symlink(prefix.join("bin/bailiwick"), &link).unwrap();
    Finished::of(world.command(&link).args(["doctor", "--json"])).expect(0);
}

#[test]
fn the_script_says_how_it_is_used() {
    let world = World::new(User::Myself);
    let archive = unpacked(&world);
    let mut install = world.command("sh");
    let wrong = Finished::of(install.arg(archive.join("install.sh")).args(["a", "b"])).expect(2);
    assert!(wrong.stderr.starts_with("usage: "), "{}", wrong.stderr);
    let shell = |script: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(script);
        Command::new("bash").arg("-n").arg(path).stdin(Stdio::null()).status().unwrap()
    };
    for script in ["build", "install.sh", "debian/postinst"] {
        assert!(shell(script).success(), "{script}");
    }
}
