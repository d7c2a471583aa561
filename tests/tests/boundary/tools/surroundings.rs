//! Tests the surroundings of a call: environment variables, the project's instructions, and names that are no UTF-8.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, shell};
use tests::tier::{self, everywhere};
use tests::world::{KEY, tool_results};
use tests::{Finished, User, World};

use crate::tools::turn::{command, content, turn};

#[test]
fn variables_pass_by_allowlist_and_by_flag() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let print = "echo \"[$PASSED] [$SET] [$OTHER] [$ANTHROPIC_API_KEY] [$AWS_SECRET_ACCESS_KEY] [$GITHUB_TOKEN] [$LC_ALL]\"";
        let server = model_of([shell(print), shell("env; cat /proc/self/environ"), done()]);
        let mut task = world.exec(&server, &["--env", "PASSED", "--env", "SET=a=b c"]);
        for name in ["PASSED", "OTHER", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"] {
            task.env(name, format!("value of {name}"));
        }
        Finished::of(&mut task).expect(0);
        let said = content(&tool_results(&server, 1)[0]);
        assert!(said.contains("[value of PASSED] [a=b c] [] [] [] [] [C.UTF-8]"), "{said}");
        let all = content(&tool_results(&server, 2)[0]);
        assert!(!all.contains(KEY) && !all.contains("value of AWS") && all.contains("PATH="), "{all}");
    }
}

#[test]
fn the_projects_instructions_reach_the_model() {
    let world = World::new(User::Myself);
    world.file("AGENTS.md", "Always run test.sh.\n");
    let server = model_of([done()]);
    world.run(&server, &[]).expect(0);
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert!(body["messages"][0].to_string().contains("Always run test.sh."), "{body}");
    // The fixed prefix holds nothing of the project.
    assert!(!body["system"].to_string().contains("Always run"), "{body}");
    let prefix = body["system"].to_string().len() + body["tools"].to_string().len();
    assert!(prefix <= 12 << 10, "system and tools have {prefix} bytes");
}

#[test]
fn instructions_of_the_user_and_of_directories_and_skills_reach_the_model() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let config = world.own().join("config");
        fs::create_dir_all(&config).unwrap();
        fs::set_permissions(&config, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(config.join("AGENTS.md"), "Answer in Latin.\n").unwrap();
        world.file("CLAUDE.md", "Run make.\n");
        world.file("src/deep/AGENTS.md", "Only here.\n");
        world.file("target/AGENTS.md", "Not this one.\n");
        world.file(".gitignore", "target\n");
        world.file(
            ".agents/skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Reads PDFs.\n---\nUse pdftotext.\n",
        );
        world.commit();
        let server = model_of([done()]);
        world.run(&server, &[]).expect(0);
        let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
        let said = body["messages"][0].to_string();
        for part in [
            "Answer in Latin.",
            "Run make.",
            "- src/deep/AGENTS.md",
            "- pdf: Reads PDFs. (.agents/skills/pdf/SKILL.md)",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        for part in ["Only here.", "target/AGENTS.md", "pdftotext"] {
            assert!(!said.contains(part), "{part}: {said}");
        }
        fs::set_permissions(config.join("AGENTS.md"), fs::Permissions::from_mode(0o666)).unwrap();
        let refused = world.run(&server, &[]).expect(2);
        assert!(refused.stderr.contains("other users can change this file"), "{}", refused.stderr);
    }
}

#[test]
fn instructions_that_are_a_link_out_of_the_readable_stay_unread() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let secret = world.home().join(".ssh");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("id_ed25519"), "a private key\n").unwrap();
        std::os::unix::fs::symlink(secret.join("id_ed25519"), world.project().join("AGENTS.md")).unwrap();
        let server = model_of([done()]);
        world.run(&server, &[]).expect(0);
        let body = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
        assert!(!body.contains("a private key"), "{body}");
    }
}

#[test]
fn names_that_are_not_utf_8_work_in_commands_and_listings() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let asked = [
            command("echo raw > $'r\\xffw.txt'; echo ok"),
            ("list_directory", json!({"path": "."})),
            ("search_files", json!({"pattern": "raw"})),
            command("cat r*w.txt"),
        ];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(results.iter().all(|result| result["is_error"] != true), "{results:?}");
        assert!(content(&results[1]).contains("w.txt"), "{results:?}");
        assert!(content(&results[2]).contains("raw") && content(&results[3]).contains("raw"), "{results:?}");
        assert_eq!(run.code, 0);
    }
}

#[test]
fn a_project_whose_own_name_is_not_utf_8_works() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        let project = world.root().join(OsStr::from_bytes(b"pro ject \xff\xfe"));
        fs::create_dir(&project).unwrap();
        world.give(&project);
        let asked = [
            ("write_file", json!({"path": "new.txt", "content": "new\n"})),
            command("cat new.txt && echo more >> new.txt"),
            ("read_file", json!({"path": "new.txt"})),
        ];
        let server = model_of([calls(&asked), done()]);
        let mut task = world.bailiwick(["exec", "--base-url", &server.base_url(), "--mode", "auto", "do it"]);
        task.args(world.tier_flags());
        task.arg("-C").arg(&project).args(["--patch", "out.diff"]).env("ANTHROPIC_API_KEY", KEY);
        task.current_dir(&project);
        let run = Finished::of(&mut task).expect(0);
        assert_eq!(run.stdout, "Done.\n");
        let results = tool_results(&server, 1);
        assert!(results.iter().all(|result| result["is_error"] != true), "{results:?}");
        assert!(content(&results[2]).contains("more"), "{results:?}");
        let patch = fs::read_to_string(project.join("out.diff")).unwrap();
        assert!(patch.contains("+new\n+more\n") && !patch.contains("out.diff"), "{patch}");
    }
}
