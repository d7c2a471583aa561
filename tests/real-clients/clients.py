"""The clients: for each its requirements, its files, and the command that reaches HOST and prints `says`."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Client:
    name: str
    # Programs that must exist, or Python modules as "module:NAME".
    needs: tuple[str, ...]
    # Command that bash runs in a project with the files. HOST is replaced in both. Certificates: ca.pem.
    command: str
    says: str = "answered by HOST"
    # Command that prints the client's version.
    version: str = ""
    files: dict[str, str] = field(default_factory=dict)
    # Command that is run unconfined before the client.
    prepare: str = ""


PYTHON = 'python3 - <<"END"\n%s\nEND\n'


def python(name, script, module=""):
    version = f"import {module}; print({module}.__version__)" if module else "import platform; print(platform.python_version())"
    needs = ("python3", *([f"module:{module}"] if module else []))
    return Client(name, needs, PYTHON % script, version=f'python3 -c "{version}"')


SSL = "import ssl\ncontext = ssl.create_default_context(cafile='ca.pem')\n"

JAVA = """
import java.net.*; import java.net.http.*;
public class Client {
    public static void main(String[] arguments) throws Exception {
        var uri = URI.create("https://" + arguments[1] + "/");
        if (arguments[0].equals("new"))
            System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body());
        else
            System.out.print(new String(uri.toURL().openStream().readAllBytes()));
    }
}
"""

GO = """
package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
    answer, err := http.Get("https://" + os.Args[1] + "/")
    if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
    body, _ := io.ReadAll(answer.Body)
    fmt.Print(string(body))
}
"""

CARGO = {
    "Cargo.toml": '[package]\nname = "own"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nlittle = "1"\n[workspace]\n',
    "src/lib.rs": "",
    ".cargo/config.toml": '[source.crates-io]\nreplace-with = "own"\n[source.own]\nregistry = "sparse+https://HOST/index/"\n',
}

SSH = "ssh -F none -i deploy -o IdentitiesOnly=yes -o UserKnownHostsFile=known -o StrictHostKeyChecking=yes -o BatchMode=yes"


def java(name, kind):
    return Client(name, ("java", "keytool"), f"java -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=trusted Client.java {kind} HOST",
                  version="java -version 2>&1 | head -1 | cut -d'\"' -f2", files={"Client.java": JAVA})


def go(name, cgo):
    return Client(name, ("go",), "SSL_CERT_FILE=ca.pem ./client HOST", version="go version | cut -d' ' -f3", files={"client.go": GO},
                  prepare=f"GOCACHE=$PWD/cache CGO_ENABLED={cgo} go build -o client client.go && chmod -R u+w cache && rm -r cache")


CLIENTS = [
    Client("curl, HTTPS", ("curl",), "curl -sS --cacert ca.pem https://HOST/", version="curl --version | head -1 | cut -d' ' -f2"),
    Client("curl, HTTP", ("curl",), "curl -sS http://HOST/", version="curl --version | head -1 | cut -d' ' -f2"),
    Client("wget", ("wget",), "wget -nv -O- --ca-certificate=ca.pem https://HOST/", version="wget --version | head -1 | cut -d' ' -f3"),
    Client("git over HTTPS", ("git",), "GIT_SSL_CAINFO=ca.pem git ls-remote https://HOST/git/", "refs/heads/main", "git --version | cut -d' ' -f3"),
    Client("git over ssh", ("git", "ssh", "sshd"), f"GIT_SSH_COMMAND='{SSH}' git ls-remote ssh://root@HOST/git", "refs/heads/main",
           "ssh -V 2>&1 | cut -d' ' -f1"),
    Client("npm", ("npm",), "npm install --registry https://HOST/ --cafile ca.pem --fetch-retries 0 --no-audit --no-fund little && node node_modules/little",
           "little was installed", "npm --version", {"package.json": '{"name": "own", "version": "0.0.0"}'}),
    Client("pip", ("python3", "module:pip"), "python3 -m pip install --disable-pip-version-check --cert ca.pem --index-url https://HOST/simple/ --retries 0 "
           "--target t little && PYTHONPATH=t python3 -c 'import little'", "little was installed", "python3 -m pip --version | cut -d' ' -f2"),
    Client("uv", ("uv",), "SSL_CERT_FILE=ca.pem UV_HTTP_RETRIES=0 uv pip install --index-url https://HOST/simple/ --target t little "
           "&& PYTHONPATH=t python3 -c 'import little'", "little was installed", "uv --version | cut -d' ' -f2"),
    Client("cargo", ("cargo",), "CARGO_HOME=$PWD/home CARGO_HTTP_CAINFO=ca.pem "
           "CARGO_NET_RETRY=0 cargo fetch && ls home/registry/cache/*", "little-1.0.0.crate", "cargo --version | cut -d' ' -f2", CARGO),
    Client("node, fetch", ("node",), "NODE_EXTRA_CA_CERTS=ca.pem node -e \"fetch('https://HOST/').then(r => r.text()).then(console.log, e => "
           "{ console.error(e.message + ': ' + e.cause); process.exit(1) })\"", version="node --version"),
    Client("node, https", ("node",), "NODE_EXTRA_CA_CERTS=ca.pem node -e \"require('https').get('https://HOST/', r => r.on('data', d => "
           "process.stdout.write(d))).on('error', e => { console.error(e.message); process.exit(1) })\"", version="node --version"),
    python("requests", "import requests\nprint(requests.get('https://HOST/', verify='ca.pem').text)", "requests"),
    python("httpx", SSL + "import httpx\nprint(httpx.get('https://HOST/', verify=context).text)", "httpx"),
    python("aiohttp", SSL + """import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session, session.get('https://HOST/', ssl=context) as answer:
        print(await answer.text())
asyncio.run(main())""", "aiohttp"),
    python("python, asyncio", SSL + """import asyncio
async def main():
    reader, writer = await asyncio.open_connection('HOST', 443, ssl=context)
    writer.write(b'GET / HTTP/1.1\\r\\nHost: HOST\\r\\nConnection: close\\r\\n\\r\\n')
    print((await reader.read()).decode())
asyncio.run(main())"""),
    python("python, a raw socket", """import socket
connection = socket.create_connection(('HOST', 7))
connection.sendall(b'answered by HOST')
print(connection.recv(99).decode())"""),
    Client("bash, /dev/tcp", ("bash",), "exec 3<>/dev/tcp/HOST/7 && echo 'answered by HOST' >&3 && head -1 <&3", version="echo $BASH_VERSION"),
    java("Java, HttpClient", "new"),
    java("Java, URLConnection", "old"),
    Client("tokio, TcpStream", ("tokio-client",), "tokio-client HOST:7 'answered by HOST'"),
    go("go, its own resolver", 0),
    go("go, the C library's resolver", 1),
]
