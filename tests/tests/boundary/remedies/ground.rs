//! Sets up the project of a scene, with the obstacles around it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use ipc::confinement::Tier;
use tests::{User, World};

/// Answer of a server outside of the sandbox to every request.
pub(crate) const ANSWER: &str = "served from outside";

/// Project of a scene and its surroundings.
pub(crate) struct Ground {
    pub(crate) world: World,
    outside: PathBuf,
    port: u16,
    /// Path of a file in the host's `/tmp`. The file is removed at the end.
    shared: PathBuf,
}

impl Ground {
    pub(crate) fn new(user: User, tier: Tier) -> Self {
        let world = World::new(user).in_tier(tier);
        world.file("inside.txt", "inside\n");
        world.commit();
        let outside = world.outside();
        fs::write(outside.join("hidden.txt"), "handed over\n").unwrap();
        world.give(&outside.join("hidden.txt"));
        let cache = world.home().join(".cache");
        fs::create_dir(&cache).unwrap();
        world.give(&cache);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = outside.join("socket");
        let unix = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        thread::spawn(move || listener.incoming().flatten().for_each(answer));
        thread::spawn(move || unix.incoming().flatten().for_each(answer));
        let name = world.root().file_name().unwrap();
        let shared = PathBuf::from("/tmp").join(name);
        Self { world, outside, port, shared }
    }

    /// Replaces the placeholders in a text by this scene's paths.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{o}", &self.outside.display().to_string())
            .replace("{port}", &self.port.to_string())
            .replace("{tmp}", &self.shared.display().to_string())
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.outside.join(name)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.shared);
    }
}

pub(crate) fn answer(mut stream: impl Read + Write) {
    let mut asked = [0; 1024];
    let _ = stream.read(&mut asked);
    let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{ANSWER}", ANSWER.len());
}
