//! Tests that programs which know nothing of a gateway reach the allowed hosts, and no others.

use crate::ground::{Ground, PYTHON, on_a_machine};
use tests::Finished;

const LIST: &str = "a.example,a.example:80,a.example:7,*.b.example:80,dns.example:80";

/// Placeholder in a command for a client that uses tokio.
const TOKIO: &str = "TOKIO";

/// Program: its name, a command with `HOST` in place of the host, and the output if the host is reached.
struct Program {
    name: &'static str,
    command: &'static str,
    printed: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program { name: "curl", command: "curl -ksS https://HOST/", printed: "GET answered by" },
    Program { name: "curl", command: "curl -sS http://HOST/", printed: "GET answered by" },
    Program { name: "wget", command: "wget -qO- http://HOST/", printed: "GET answered by" },
    Program {
        name: PYTHON,
        command: "/usr/bin/python3 -c \"import ssl, urllib.request as r
print(r.urlopen('https://HOST/', context=ssl._create_unverified_context()).read())\"",
        printed: "GET answered by",
    },
    Program {
        name: PYTHON,
        command: "/usr/bin/python3 -c \"import asyncio, ssl
async def main():
    reader, writer = await asyncio.open_connection('HOST', 443, ssl=ssl._create_unverified_context())
    writer.write(b'GET / HTTP/1.0\\r\\n\\r\\n')
    print(await reader.read())
asyncio.run(main())\"",
        printed: "GET answered by",
    },
    Program {
        name: PYTHON,
        command: "/usr/bin/python3 -c \"import socket
c = socket.create_connection(('HOST', 7))
c.sendall(b'raw bytes')
print(c.recv(99))\"",
        printed: "raw bytes",
    },
    Program { name: TOKIO, command: "TOKIO HOST:7 'raw bytes'", printed: "raw bytes" },
    Program {
        name: "node",
        command: "NODE_TLS_REJECT_UNAUTHORIZED=0 NODE_NO_WARNINGS=1 node -e \"
require('https').get('https://HOST/', r => r.on('data', d => process.stdout.write(d)))
  .on('error', e => { console.error(e.code); process.exit(1) })\"",
        printed: "GET answered by",
    },
    Program {
        name: "node",
        command: "NODE_TLS_REJECT_UNAUTHORIZED=0 NODE_NO_WARNINGS=1 node -e \"
fetch('https://HOST/').then(r => r.text()).then(console.log, e => { console.error(e.cause.code); process.exit(1) })\"",
        printed: "GET answered by",
    },
    Program {
        name: "git",
        command: "git -c http.sslVerify=false ls-remote https://HOST/git/",
        printed: "refs/heads/main",
    },
];

/// Creates a repository that any HTTP server can serve.
fn repository(ground: &Ground) {
    let make = "git init -q -b main r && git -C r -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m x \
                && git clone -q --bare r git && git -C git update-server-info";
    let mut command = std::process::Command::new("sh");
    let done = Finished::of(command.args(["-c", make]).current_dir(ground.world.root()));
    assert_eq!(done.code, 0, "{}", done.stderr);
}

fn has(ground: &Ground, program: &str) -> bool {
    if program == TOKIO {
        return true;
    }
    let find = format!("command -v {program} && {program} --version");
    Finished::of(ground.world.command("sh").args(["-c", &find])).code == 0
}

#[test]
fn programs_reach_what_is_on_the_list_and_nothing_else() {
    on_a_machine("reached::programs_reach_what_is_on_the_list_and_nothing_else", |ground| {
        repository(ground);
        let tokio = ground.world.project().join("tokio-client");
        std::fs::copy(env!("CARGO_BIN_EXE_tokio-client"), &tokio).unwrap();
        for Program { name, command, printed } in PROGRAMS {
            if !has(ground, name) {
                eprintln!("skipped: no {name} on this machine");
                continue;
            }
            let command = command.replace(TOKIO, tokio.to_str().unwrap());
            let [on, off] = ["a.example", "evil.example"].map(|host| command.replace("HOST", host));
            let reached = ground.run(LIST, &on);
            assert!(reached.code == 0 && reached.stdout.contains(printed), "{on}: {reached:?}");
            let came = ground.take();
            assert!(came.iter().any(|packet| packet.starts_with("tcp 203.0.113.1:")), "{on}: {came:?}");
            let denied = ground.run(LIST, &off);
            assert!(denied.code != 0 && !denied.stdout.contains(printed), "{off}: {denied:?}");
            assert_eq!(ground.take(), Vec::<String>::new(), "{off}");
            let freely = Finished::of(ground.world.command("sh").args(["-c", &off]));
            assert!(freely.stdout.contains(printed), "{off}: {freely:?}");
            ground.take();
        }
    });
}

/// Addresses of the proxy: with a name, and without one for programs that cannot resolve it.
const PROXIES: [&str; 4] = [
    "http://proxy.bailiwick.internal:1080",
    "http://198.19.255.254:1080",
    "socks5h://proxy.bailiwick.internal:1080",
    "socks5h://198.19.255.254:1080",
];

#[test]
fn programs_that_speak_proxy_reach_what_is_on_the_list_and_nothing_else() {
    on_a_machine("reached::programs_that_speak_proxy_reach_what_is_on_the_list_and_nothing_else", |ground| {
        for proxy in PROXIES {
            let fetch = |url: &str| format!("https_proxy={proxy} ALL_PROXY={proxy} curl -ksS -p {url}");
            for url in ["https://a.example/", "http://x.b.example/"] {
                let reached = ground.run(LIST, &fetch(url));
                assert!(reached.stdout.contains("GET answered by"), "{proxy} {url}: {reached:?}");
                let came = ground.take();
                assert!(came.iter().any(|packet| packet.starts_with("tcp 203.0.113.")), "{came:?}");
            }
            for url in ["https://evil.example/", "https://a.example:7777/", "http://203.0.113.1/"] {
                let denied = ground.run(LIST, &fetch(url));
                assert!(denied.code != 0 && !denied.stdout.contains("GET"), "{proxy} {url}: {denied:?}");
                assert_eq!(ground.take(), Vec::<String>::new(), "{proxy} {url}");
            }
            // A listed name gives no access to addresses that need a separate permission: this machine, its neighbours,
            // credentials.
            for host in
                ["loopback.example", "own.example", "private.example", "near.example", "metadata.example"]
            {
                let denied = ground.run(&format!("{LIST},{host}"), &fetch(&format!("https://{host}/")));
                assert!(denied.code != 0 && denied.stdout.is_empty(), "{proxy} {host}: {denied:?}");
                let came = ground.take();
                assert!(!came.iter().any(|packet| packet.starts_with("tcp")), "{proxy} {host}: {came:?}");
            }
            // The name in the TLS handshake must be the requested one.
            let hidden = "--connect-to evil.example:443:a.example:443 https://evil.example/";
            let denied = ground.run(LIST, &fetch(hidden));
            assert!(denied.code != 0, "{proxy}: {denied:?}");
            let came = ground.take();
            assert!(!came.iter().any(|packet| packet.starts_with("tcp")), "{proxy}: {came:?}");
        }
    });
}

#[test]
fn subdomains_and_names_of_the_resolver_are_reached() {
    on_a_machine("reached::subdomains_and_names_of_the_resolver_are_reached", |ground| {
        for (host, at) in [("x.b.example", "203.0.113.3"), ("dns.example", "203.0.113.8")] {
            let done = ground.python(LIST, &format!("fetch('http://{host}/')"));
            assert_eq!(done.stdout, format!("GET answered by ::ffff:{at}\n"), "{}", done.stderr);
        }
        ground.take();
        let done = ground.python(LIST, "fetch('http://b.example/')");
        assert_eq!(done.stdout, "[Errno 111] Connection refused\n");
        assert_eq!(ground.take(), Vec::<String>::new());
    });
}
