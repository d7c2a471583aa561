use std::io::{Read, Write};
use std::process::{Command, Stdio};

use ipc::rights::{Network, Reach};

use crate::harness::{Place, as_each_user, pipe};

/// Runs a program under a mediator, with the network off and on. Skips it if it does not run without one either.
fn runs(place: &Place, command: &[&str]) {
    let run = || {
        let output = Command::new(command[0])
            .args(&command[1..])
            .current_dir(place.path("in"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", place.path("in"))
            .env("TMPDIR", place.path("in"))
            .stdin(Stdio::null())
            .output();
        output.map_err(|error| error.to_string()).and_then(|output| {
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            if output.status.success() { Ok(()) } else { Err(text) }
        })
    };
    let (mut told, mut tell) = pipe();
    place.unmediated(|| tell.write_all(run().err().unwrap_or_default().as_bytes()).unwrap());
    drop(tell);
    let mut error = String::new();
    told.read_to_string(&mut error).unwrap();
    if !error.is_empty() {
        eprintln!("skipped: not on this machine: {}: {error}", command[0]);
        return;
    }
    for net in [Network::Off, Network::On] {
        place.mediate(net.clone(), Reach::default(), || {
            let made = place.makes_sockets();
            assert_eq!(run(), Ok(()), "{command:?}, net {net:?}, sockets made: {made}");
        });
    }
}

#[test]
fn python_talks_to_itself_between_processes() {
    run_python(&[
        "import multiprocessing as m
if __name__ == '__main__':
    m.set_start_method('fork')
    with m.Manager() as manager:
        items = manager.list()
        children = [m.Process(target=items.append, args=(n,)) for n in range(4)]
        [c.start() for c in children]; [c.join() for c in children]
        assert sorted(items) == [0, 1, 2, 3], list(items)",
        "from multiprocessing.connection import Listener, Client
import threading
for address in [None, ('localhost', 0), 'socket']:
    family = 'AF_UNIX' if address is None else None
    with Listener(address, family) as listener:
        def client(to):
            with Client(to) as c: c.send(to)
        t = threading.Thread(target=client, args=(listener.address,)); t.start()
        with listener.accept() as c: assert c.recv() == listener.address
        t.join()",
    ]);
}

#[test]
fn python_serves_and_asks_itself() {
    run_python(&[
        "import asyncio
async def main():
    async def serve(reader, writer):
        writer.write(await reader.read(5)); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    unix = await asyncio.start_unix_server(serve, 'a.sock')
    async def ask(opening):
        reader, writer = await opening
        writer.write(b'hello'); assert await reader.read(5) == b'hello'; writer.close()
    await asyncio.gather(*[ask(asyncio.open_connection('127.0.0.1', port)) for _ in range(50)],
                         *[ask(asyncio.open_unix_connection('a.sock')) for _ in range(50)])
    p = await asyncio.create_subprocess_exec('true'); assert await p.wait() == 0
asyncio.run(main())",
        "import http.server, threading, urllib.request, socket
s = http.server.ThreadingHTTPServer(('', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
for _ in range(5):
    urllib.request.urlopen('http://127.0.0.1:%d/' % s.server_port).read()
    urllib.request.urlopen('http://localhost:%d/' % s.server_port).read()
s.shutdown()
left, right = socket.socketpair()
socket.send_fds(left, [b'x'], [0]); assert socket.recv_fds(right, 1, 1)[1]",
    ]);
}

fn run_python(scripts: &[&str]) {
    as_each_user(|place| {
        for script in scripts {
            runs(place, &["python3", "-c", script]);
        }
    });
}

#[test]
fn node_and_tmux_work() {
    as_each_user(|place| {
        runs(
            place,
            &[
                "node",
                "-e",
                "const net = require('net'), child = require('child_process');
                 require('os').networkInterfaces();
                 const ask = (at) => new Promise((done, fail) => {
                   const server = net.createServer((s) => s.end('hello')).listen(at, () =>
                     net.connect(typeof at === 'string' ? at : server.address().port, '127.0.0.1')
                       .on('data', () => server.close(done)).on('error', fail));
                 });
                 ask(0).then(() => ask('node.sock')).then(() => {
                   if (child.spawnSync('true').status !== 0) process.exit(1);
                 });",
            ],
        );
        runs(
            place,
            &[
                "/bin/sh",
                "-c",
                // A server that was told to end still answers for a moment: the next one has another name.
                "tmux -S t$$ new-session -d 'sleep 100' && tmux -S t$$ list-sessions && tmux -S t$$ kill-server",
            ],
        );
    });
}
