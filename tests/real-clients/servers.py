"""Servers of the test's internet: HTTP, HTTPS, registries, git, ssh and an echo. Argument: directory of the keys.

This program writes "apart", reads a line, waits for the cable, opens its ports and writes "ready".
"""

import base64
import hashlib
import http.server
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

from machine import NAMES

PLACE = Path(sys.argv[1])
SETUP = ["link set lo up", "link set there up", *(f"addr add {at}/24 dev there" for at in NAMES.values())]


def archive(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def wheel():
    packed, info = io.BytesIO(), "little-1.0.0.dist-info"
    files = {
        "little.py": "print('little was installed')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: little\nVersion: 1.0.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(packed, "w") as opened:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            opened.writestr(name, text)
    return packed.getvalue()


NPM = archive({"package/package.json": '{"name":"little","version":"1.0.0"}', "package/index.js": "console.log('little was installed')\n"})
CRATE = archive({
    "little-1.0.0/Cargo.toml": '[package]\nname = "little"\nversion = "1.0.0"\nedition = "2021"\n',
    "little-1.0.0/src/lib.rs": "",
})
WHEEL = wheel()


def npm(host):
    tarball = {"tarball": f"https://{host}/little/-/little-1.0.0.tgz",
               "integrity": "sha512-" + base64.b64encode(hashlib.sha512(NPM).digest()).decode()}
    version = {"name": "little", "version": "1.0.0", "dist": tarball}
    return json.dumps({"name": "little", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()


def cargo(_):
    return json.dumps({"name": "little", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
                       "cksum": hashlib.sha256(CRATE).hexdigest()}).encode() + b"\n"


PAGES = {
    "/": lambda host: f"answered by {host}\n".encode(),
    "/little": npm,
    "/little/-/little-1.0.0.tgz": lambda _: NPM,
    "/simple/little/": lambda _: b'<a href="/files/little-1.0.0-py3-none-any.whl">little-1.0.0-py3-none-any.whl</a>',
    "/files/little-1.0.0-py3-none-any.whl": lambda _: WHEEL,
    "/index/config.json": lambda host: json.dumps({"dl": f"https://{host}/crates/{{crate}}-{{version}}.crate"}).encode(),
    "/index/li/tt/little": cargo,
    "/crates/little-1.0.0.crate": lambda _: CRATE,
}


class Site(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=str(PLACE))

    def log_message(self, *_):
        pass

    def do_GET(self):
        page = PAGES.get(self.path)
        if page is None:
            return super().do_GET() if self.path.startswith("/git/") else self.send_error(404)
        content = page(self.headers.get("host", ""))
        self.send_response(200)
        self.send_header("content-type", "application/json" if self.path == "/little" else "text/html")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Server(http.server.ThreadingHTTPServer):
    context = None

    def get_request(self):
        connection, by = self.socket.accept()
        if self.context:
            connection = self.context.wrap_socket(connection, True, do_handshake_on_connect=False)
        return connection, by

    def handle_error(self, *_):
        pass


def echo(connection):
    with connection:
        while data := connection.recv(1 << 16):
            connection.sendall(data)


def echoes(listener):
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def ssh():
    """Starts sshd, if it is installed. It serves only git."""
    sshd = shutil.which("sshd", path=f"/usr/sbin:{os.environ['PATH']}")
    if not sshd:
        return None
    Path("/run/sshd").mkdir(exist_ok=True)
    (PLACE / "sshd.conf").write_text(
        f"Port 22\nHostKey {PLACE}/host-ed25519\nAuthorizedKeysFile {PLACE}/deploy.pub\nPidFile none\nStrictModes no\n"
        "PermitRootLogin yes\nPasswordAuthentication no\nForceCommand git-upload-pack " + f"{PLACE}/git\n")
    return subprocess.Popen([sshd, "-D", "-f", str(PLACE / "sshd.conf"), "-E", str(PLACE / "sshd.log")])


print("apart", flush=True)
sys.stdin.readline()
for words in SETUP:
    subprocess.run(["ip", *words.split()], check=True)
sites = [Server(("", 80), Site), Server(("", 443), Site)]
sites[1].context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
sites[1].context.load_cert_chain(PLACE / "host.pem", PLACE / "host.key")
for site in sites:
    threading.Thread(target=site.serve_forever, daemon=True).start()
threading.Thread(target=echoes, args=(socket.create_server(("", 7)),), daemon=True).start()
started = ssh()
print("ready", flush=True)
sys.stdin.read()
if started:
    started.terminate()
