"""The programs: for each its requirements, its files, and the command whose output is compared."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    """One program, or several that communicate."""

    name: str
    # Commands that must exist, by path or in PATH, or Python modules as "module:NAME".
    needs: tuple[str, ...]
    # Command that bash runs in the project.
    command: str
    # Files of the project, by name.
    files: dict[str, str] = field(default_factory=dict)
    # Command that is run unconfined in the project before.
    prepare: str = ""
    # Tiers in which the output differs from that without a sandbox, each with the reason.
    differs: dict[str, str] = field(default_factory=dict)
    # True if root may run the program.
    root: bool = True
    # True if the program is in the home of the user who installed it, where other users do not look.
    toolchain: bool = False


WAIT = 'wait_for() { for _ in $(seq 200); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "never: $*"; }\n'

XDIST = """
import socket, threading, pytest

@pytest.mark.parametrize("n", range(8))
def test_a_server_of_its_own(n):
    server = socket.create_server(("127.0.0.1", 0))
    def serve():
        peer, _ = server.accept()
        peer.sendall(peer.recv(100)[::-1]); peer.close()
    thread = threading.Thread(target=serve); thread.start()
    with socket.create_connection(server.getsockname()) as client:
        client.sendall(b"abc%d" % n)
        assert client.recv(100) == (b"abc%d" % n)[::-1]
    thread.join()
"""

POOL = """
import multiprocessing

def double(n): return 2 * n

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(double, range(1000))))
"""

NODE = """
const test = require('node:test'), http = require('node:http'), net = require('node:net'), dgram = require('node:dgram');
const assert = require('node:assert'), { fork } = require('node:child_process');
for (let n = 0; n < 5; n++) test('http ' + n, async () => {
  const server = http.createServer((_, answer) => answer.end('hello ' + n));
  await new Promise(done => server.listen(0, n % 2 ? '127.0.0.1' : undefined, done));
  const text = await (await fetch(`http://127.0.0.1:${server.address().port}/`)).text();
  assert.equal(text, 'hello ' + n); server.closeAllConnections(); server.close();
});
test('unix', async () => {
  const server = net.createServer(peer => peer.end('unix'));
  await new Promise(done => server.listen('./sock', done));
  let text = ''; for await (const piece of net.connect('./sock')) text += piece;
  assert.equal(text, 'unix'); server.close();
});
test('udp', async () => {
  const server = dgram.createSocket('udp4'), client = dgram.createSocket('udp4');
  await new Promise(done => server.bind(0, '127.0.0.1', done));
  const heard = new Promise(done => server.once('message', message => done(String(message))));
  client.connect(server.address().port, '127.0.0.1', () => client.send('datagram'));
  assert.equal(await heard, 'datagram'); server.close(); client.close();
});
"""

CRATE = """
#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_thousand_connections() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            for stream in server.incoming().take(1000) { stream.unwrap().write_all(b"x").unwrap(); }
        });
        for _ in 0..1000 {
            let mut text = String::new();
            TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "x");
        }
        serving.join().unwrap();
    }

    #[test]
    fn datagrams() {
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        a.send(b"one").unwrap();
        let mut bytes = [0; 9];
        let (read, from) = b.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..read], from), (&b"one"[..], a.local_addr().unwrap()));
    }

    #[test]
    fn unix() {
        let path = std::env::temp_dir().join(format!("s{}", std::process::id()));
        let server = UnixListener::bind(&path).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"abc").unwrap(); drop(client);
        let mut text = String::new();
        server.accept().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }
}
"""

# Tests of tokio that need only a loopback network. They are run as cargo would, but each with one thread.
TOKIO = (
    "tcp_accept tcp_connect tcp_echo tcp_into_split tcp_into_std tcp_peek tcp_shutdown tcp_socket tcp_split "
    "tcp_stream udp uds_cred uds_datagram uds_socket uds_split uds_stream net_bind_resource net_lookup_host "
    "net_panic net_unix_pipe buffered io_copy_bidirectional"
).split()

PROGRAMS = (
    Program(
        "python -m http.server, curl",
        ("/usr/bin/python3", "curl"),
        WAIT
        + """/usr/bin/python3 -m http.server 8137 --bind 127.0.0.1 2>log & server=$!
        wait_for curl -s http://127.0.0.1:8137/
        curl -s http://127.0.0.1:8137/a.txt; curl -s -o /dev/null -w '%{http_code}\\n' http://localhost:8137/none
        seq 50 | xargs -P 8 -I{} curl -s http://127.0.0.1:8137/a.txt | sort | uniq -c
        kill $server; wait $server; grep -c 'GET /a.txt' log""",
        {"a.txt": "from the server\n"},
    ),
    Program(
        "pytest-xdist",
        ("/usr/bin/python3", "module:xdist"),
        "/usr/bin/python3 -m pytest -q -n 3 -p no:cacheprovider | tail -1 | sed 's/ in .*//'",
        {"test_it.py": XDIST},
    ),
    Program(
        "python multiprocessing, a pool of processes",
        ("/usr/bin/python3",),
        "/usr/bin/python3 pool.py 2>&1 | tail -1",
        {"pool.py": POOL},
        differs={"floor": "its locks are in /dev/shm, which is the host's here; in a container, or with --write /dev/shm, the same"},
    ),
    Program(
        "node --test, with servers",
        ("node",),
        "node --test 2>&1 | grep -E '^# (tests|pass|fail)'",
        {"test.js": NODE},
    ),
    Program(
        "cargo test, with TcpListener",
        ("cargo",),
        "cargo test --offline -q 2>&1 | grep -oE 'test result: .*; 0 measured' | head -1",
        {"Cargo.toml": '[package]\nname = "served"\nversion = "0.1.0"\nedition = "2021"\n', "src/lib.rs": CRATE},
        toolchain=True,
    ),
    Program(
        "redis-server, redis-cli",
        ("redis-server", "redis-cli"),
        WAIT
        + """redis-server --port 6437 --bind 127.0.0.1 --unixsocket $PWD/sock --save '' --daemonize no >log & server=$!
        wait_for redis-cli -p 6437 ping
        for way in '-p 6437' "-s $PWD/sock"; do
            redis-cli $way set key value; redis-cli $way get key
            seq 2000 | sed 's/.*/incr counter/' | redis-cli $way | tail -1
            seq 5000 | sed 's/.*/SET key& value/' | redis-cli $way --pipe | tail -1
        done
        redis-cli -p 6437 shutdown nosave; wait $server; echo ended $?""",
    ),
    Program(
        "PostgreSQL over its unix socket",
        ("psql", "/usr/lib/postgresql"),
        """bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
        $bin/initdb -D data -A trust -U me >log 2>&1 && echo made || tail -3 log
        $bin/pg_ctl -D data -w -l log -o "-c listen_addresses='' -k $PWD" start >/dev/null && echo started || tail -3 log
        sql() { psql -h "$PWD" -U me -d postgres -qAtc "$1"; }
        sql 'create table t as select generate_series(1, 10000) n'; sql 'select sum(n), count(*) from t'
        sql "select pg_sleep(0), count(*) from pg_stat_activity where backend_type = 'client backend'"
        seq 20 | xargs -P 5 -I{} psql -h "$PWD" -U me -d postgres -qAtc 'select sum(n) from t' | sort | uniq -c
        $bin/pg_ctl -D data -w stop >/dev/null && echo stopped""",
        root=False,
    ),
    Program(
        "tokio's own tests of its network",
        ("cargo",),
        """for test in built/*; do $test --test-threads 2 >said 2>&1; echo $(basename $test) $(grep -oE '[0-9]+ passed; [0-9]+ failed' said)
            sed -n 's/^test \\(.*\\) \\.\\.\\. FAILED$/  \\1 failed/p' said; done""",
        # The tests are built once, because cargo builds everything again at another path.
        prepare=f"""set -e
        mkdir built; built=$PWD/built
        source=$(ls -d "${{CARGO_HOME:-$HOME/.cargo}}"/registry/src/*/tokio-1.* | tail -1); copy="$CACHE/$(basename "$source")"
        if [ ! -d "$copy" ]; then
            cp -r "$source" "$copy.new"; rm -f "$copy.new/Cargo.lock"
            # Its test crates have to be of this very tokio, as in its own workspace.
            printf '\\n[patch.crates-io]\\ntokio = {{ path = "." }}\\n' >>"$copy.new/Cargo.toml"
            mv "$copy.new" "$copy"
        fi
        cd "$copy"; log=$CACHE/log
        CARGO_TARGET_DIR="$CACHE/tokio" cargo test --features full --no-run {" ".join("--test " + name for name in TOKIO)} 2>$log || {{ tail -5 $log; exit 1; }}
        grep -oE '/[^ )]*/deps/[a-z_]+-[0-9a-f]+' $log | while read -r path; do
            name=$(basename "$path"); cp "$path" "$built/${{name%-*}}"; done""",
        differs={
            "full": "but uds_cred::test_listener: a peer sees the broker's pid",
            "floor": "but uds_cred::test_listener (the same), and udp::send_to_recv_closed_returns_err: "
            "a datagram that nobody inside would get is refused at once",
        },
        toolchain=True,
    ),
)
