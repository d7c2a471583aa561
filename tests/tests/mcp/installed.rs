//! Tests servers whose command installs them: a hostile package reaches nothing outside of its own directory.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use boundary::install::{InstallError, Registry, SelfInstaller, install};
use boundary::monitor::{Programs, Spawner};
use boundary::policy::HiddenInodes;
use serde_json::{Value, json};
use tests::guests::{ServerRights, confinement};
use tests::{User, World, skip, tier};

/// Script of the package. It makes attacks, and writes their results to a file next to it.
const ATTACK: &str = r#"
const fs = require("fs"), net = require("net"), path = require("path");
const { secret, outside, home, port, status } = require("./aims.json");
const report = {};
const act = (name, body) => { try { report[name] = body() ?? "done"; } catch (error) { report[name] = error.code; } };
act("read", () => fs.readFileSync(secret, "utf8"));
act("write", () => fs.writeFileSync(outside, "planted"));
act("profile", () => fs.appendFileSync(path.join(home, ".profile"), "planted"));
act("own", () => fs.writeFileSync("own", "mine"));
const end = (name) => {
    report.connect = name;
    fs.writeFileSync("report.json", JSON.stringify(report));
    process.exit(status);
};
const socket = net.connect(port, "127.0.0.1", () => end("done"));
socket.on("error", (error) => end(error.code));
"#;

struct Ground {
    world: World,
    package: PathBuf,
    secret: PathBuf,
    outside: PathBuf,
    home: PathBuf,
    listener: TcpListener,
}

impl Ground {
    /// Creates a package whose script makes the attacks at its installation, and exits with this status.
    fn new(status: i32) -> Self {
        let world = World::new(User::Myself);
        let root = world.root().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let [home, source] = ["home", "source/package"].map(|name| root.join(name));
        for place in [&home, &source] {
            fs::create_dir_all(place).unwrap();
        }
        let (secret, outside) = (home.join("id_ed25519"), root.join("outside"));
        fs::write(&secret, "the key").unwrap();
        let port = listener.local_addr().unwrap().port();
        let aims =
            json!({ "secret": secret, "outside": outside, "home": home, "port": port, "status": status });
        let package = json!({
            "name": "attacker", "version": "6.6.6", "bin": "server.js",
            "scripts": { "postinstall": "node attack.js" },
        });
        for (name, text) in [
            ("aims.json", aims.to_string()),
            ("package.json", package.to_string()),
            ("attack.js", ATTACK.to_owned()),
            ("server.js", "#!/usr/bin/env node\n".to_owned()),
        ] {
            fs::write(source.join(name), text).unwrap();
        }
        let packed = root.join("attacker.tgz");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&packed).arg("-C").arg(root.join("source")).arg("package");
        assert!(tar.status().unwrap().success());
        Self { world, package: packed, secret, outside, home, listener }
    }

    fn package(&self) -> String {
        format!("attacker@file:{}", self.package.display())
    }

    fn report(tree: &Path) -> Value {
        let report = fs::read_to_string(tree.join("node_modules/attacker/report.json")).unwrap();
        serde_json::from_str(&report).unwrap()
    }

    /// True if somebody has connected since the last call.
    fn was_reached(&self) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        self.listener.accept().map(|(mut stream, _)| stream.read(&mut [0]).ok()).is_ok()
    }

    fn install(&self, tier: ipc::confinement::Tier, tree: &Path) -> Result<Value, InstallError> {
        let copied = tests::Programs::get();
        let programs =
            Programs { sandbox_exec: copied.path("sandbox-exec"), worker: copied.path("bailiwick-worker") };
        let store = self.world.root().join("store");
        for place in [&store, tree] {
            fs::create_dir_all(place).unwrap();
        }
        let what = SelfInstaller {
            registry: Registry::Npm,
            packages: vec![self.package()],
            program: None,
            arguments: Vec::new(),
        };
        let rights = ServerRights { read: vec![self.package.clone()], ..ServerRights::default() };
        let confined = confinement(&programs, &store, rights, tier::choice(tier), None);
        let confined = what.confinement(confined, tree);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default()).unwrap();
            let done = install(&spawner, confined, &what, tree.to_owned()).await?;
            assert_eq!(done.version, "6.6.6");
            assert!(done.command.ends_with("node_modules/.bin/attacker"), "{}", done.command);
            assert!(done.tree.entries > 5);
            Ok(Self::report(tree))
        })
    }
}

fn has_npm() -> bool {
    ["/usr/bin/npm", "/usr/local/bin/npm"].iter().any(|npm| Path::new(npm).exists())
}

#[test]
fn a_script_of_a_package_reaches_nothing_beside_its_own_directory() {
    if !has_npm() {
        skip!("no npm among the programs of the system");
    }
    let ground = Ground::new(0);
    let free = ground.world.root().join("free");
    let mut npm = Command::new("npm");
    npm.args(["install", "--prefix"]).arg(&free).args(["--no-audit", "--no-fund", "--foreground-scripts"]);
    let done = npm.arg(ground.package()).env("HOME", ground.world.root()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let all =
        json!({ "read": "the key", "write": "done", "profile": "done", "own": "done", "connect": "done" });
    assert_eq!(Ground::report(&free), all, "unconfined it does all of that");
    assert!(ground.was_reached() && ground.outside.exists() && ground.home.join(".profile").exists());
    for tier in tier::all() {
        let _ = fs::remove_file(&ground.outside);
        let _ = fs::remove_file(ground.home.join(".profile"));
        let tree = ground.world.root().join(format!("tree-{tier}"));
        let report = ground.install(tier, &tree).unwrap();
        assert_eq!(report["own"], "done", "{tier}: {report}");
        for act in ["read", "write", "profile", "connect"] {
            let code = report[act].as_str().unwrap();
            let denied =
                ["EACCES", "EPERM", "ENOENT", "EROFS", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"];
            assert!(denied.contains(&code), "{tier}: {act}: {report}");
        }
        assert!(!ground.was_reached() && !ground.outside.exists(), "{tier}");
        assert!(!ground.home.join(".profile").exists(), "{tier}");
        assert_eq!(fs::read_to_string(&ground.secret).unwrap(), "the key");
    }
}

#[test]
fn a_package_whose_script_fails_is_not_installed() {
    if !has_npm() {
        skip!("no npm among the programs of the system");
    }
    let ground = Ground::new(3);
    let tier = tier::all()[0];
    let failed = ground.install(tier, &ground.world.root().join("tree")).unwrap_err();
    let InstallError::Failed { said, .. } = failed else { panic!("{failed}") };
    assert!(said.contains("npm error command"), "{said}");
}
