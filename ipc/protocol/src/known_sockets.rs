//! Well-known unix sockets, and the access that each gives to a program that reaches it.

use ipc::path::WirePath;

/// A row of the table: a directory, names of sockets below it, and the access that such a socket gives.
struct KnownSocket {
    below: &'static str,
    name: &'static str,
    gives: &'static str,
}

const fn row(below: &'static str, name: &'static str, gives: &'static str) -> KnownSocket {
    KnownSocket { below, name, gives }
}

const OWN_CONTAINERS: &str = "containers that can read and write every file that you can";
const ROOT_BY_CONTAINERS: &str = "root on this machine: a container can change any file";
const SSH_KEYS: &str =
    "signing with your SSH keys, and so logging in as you; the keys themselves cannot be read";
const AS_YOU: &str = "acting as you: commands can start programs outside of the sandbox";
const SCREEN: &str = "your screen and keyboard: commands can see windows and type into them";
const DATABASE: &str = "the databases that your user can open";

/// The known sockets. The first row that matches applies.
const TABLE: &[KnownSocket] = &[
    row("/run/user", "docker.sock", OWN_CONTAINERS),
    row("/run/user", "podman.sock", OWN_CONTAINERS),
    row("/", "docker.sock", ROOT_BY_CONTAINERS),
    row("/", "podman.sock", ROOT_BY_CONTAINERS),
    row("/", "containerd.sock", ROOT_BY_CONTAINERS),
    row("/", "crio.sock", ROOT_BY_CONTAINERS),
    row("/", "libvirt-sock", "root on this machine: a virtual machine can use any disk of this machine"),
    row("/", "S.gpg-agent.ssh", SSH_KEYS),
    row(
        "/",
        "S.gpg-agent*",
        "signing and decrypting with your GnuPG keys; the keys themselves cannot be read",
    ),
    row("/run/user", "ssh", SSH_KEYS),
    row("/", "ssh-agent*", SSH_KEYS),
    row("/", "ssh_auth_sock", SSH_KEYS),
    row("/tmp", "agent.*", SSH_KEYS),
    row("/run/user", "control", "the passwords of your keyring while it is unlocked"),
    row("/run/user", "bus", AS_YOU),
    row("/run/user", "private", AS_YOU),
    row("/run/systemd", "private", "root on this machine, if you are root: commands can start services"),
    row("/run/dbus", "system_bus_socket", "the services of this machine, as far as your user can use them"),
    row("/tmp/.X11-unix", "X*", SCREEN),
    row("/run/user", "wayland-*", SCREEN),
    row("/run/user", "pipewire-*", "your microphone and speakers, and cameras"),
    row("/run/user", "native", "your microphone and speakers"),
    row("/", ".s.PGSQL.*", DATABASE),
    row("/", "mysqld.sock", DATABASE),
    row("/", "mysql.sock", DATABASE),
    row("/", "redis*", "the data of this Redis"),
    row("/tmp", "default", "your terminals: commands can type into a tmux outside of the sandbox"),
    row("/", "vscode-ipc-*", "your editor: commands can open files and run programs in the editor"),
    row("/", "nvim.*", "your editor: commands can run programs in the editor"),
    row("/dev", "log", "entries in the log of this machine"),
];

const UNKNOWN: &str = "whatever the program behind the socket does for clients, outside of the sandbox";

/// Returns a phrase about the access that a program gets if it reaches the socket.
pub fn gives(socket: &WirePath) -> &'static str {
    let path = socket.as_path();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let fits = |row: &&KnownSocket| {
        let is_name = match row.name.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == row.name,
        };
        is_name && path.starts_with(row.below)
    };
    TABLE.iter().find(fits).map_or(UNKNOWN, |row| row.gives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_known_socket_says_plainly_what_it_gives() {
        for (path, words) in [
            ("/run/docker.sock", "root on this machine"),
            ("/run/user/1000/docker.sock", "every file that you can"),
            ("/tmp/ssh-Xa0/agent.77", "the keys themselves cannot be read"),
            ("/run/user/1000/keyring/ssh", "the keys themselves cannot be read"),
            ("/run/user/1000/gnupg/S.gpg-agent", "GnuPG keys"),
            ("/run/user/1000/bus", "acting as you"),
            ("/run/user/1000/wayland-0", "your screen and keyboard"),
            ("/tmp/.X11-unix/X0", "your screen and keyboard"),
            ("/run/postgresql/.s.PGSQL.5432", "databases"),
            ("/tmp/tmux-1000/default", "your terminals"),
        ] {
            assert!(gives(&path.into()).contains(words), "{path}: {}", gives(&path.into()));
        }
        assert_eq!([gives(&"/srv/x".into()), gives(&"/srv/bus".into())], [UNKNOWN; 2]);
    }

    #[test]
    fn every_row_of_the_table_is_reached() {
        for (at, row) in TABLE.iter().enumerate() {
            let socket = WirePath::from(&format!("{}/1/{}", row.below, row.name.replace('*', "1")));
            assert_eq!(gives(&socket), row.gives, "row {at}");
        }
    }
}
