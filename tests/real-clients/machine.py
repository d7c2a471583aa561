"""A machine with its own network namespace, and the script's internet at the other end of a cable."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE, ON, OFF = "203.0.113.254", "203.0.113.1", "203.0.113.2"
NAMES = {"on.example": ON, "off.example": OFF}


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def ip(words):
    run("ip", *words.split())


def settle():
    """Gives this machine a hosts file, no resolver, and the user account that sshd needs."""
    ip("link set lo up")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/mnt")
    passwd = Path("/etc/passwd").read_text()
    if "\nsshd:" not in passwd:
        passwd += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
    switch = [line for line in Path("/etc/nsswitch.conf").read_text().splitlines() if not line.startswith("hosts:")]
    files = {
        "hosts": "127.0.0.1 localhost\n::1 localhost\n" + "".join(f"{at} {name}\n" for name, at in NAMES.items()),
        "resolv.conf": "nameserver 203.0.113.53\n",
        "nsswitch.conf": "\n".join([*switch, "hosts: files dns", ""]),
        "passwd": passwd,
    }
    for name, text in files.items():
        Path("/mnt", name).write_text(text)
        run("mount", "--bind", f"/mnt/{name}", f"/etc/{name}")


def certificates(place):
    """Makes a certificate authority, and a certificate of both hosts that the authority has signed."""
    quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("openssl", "req", "-x509", *ec, "-subj", "/CN=Authority of the clients' internet", "-days", "2", "-keyout", place / "ca.key",
        "-out", place / "ca.pem", **quiet)
    run("openssl", "req", *ec, "-subj", "/CN=on.example", "-keyout", place / "host.key", "-out", place / "host.csr", **quiet)
    (place / "names").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) + "\n")
    run("openssl", "x509", "-req", "-in", place / "host.csr", "-CA", place / "ca.pem", "-CAkey", place / "ca.key", "-CAcreateserial",
        "-days", "2", "-extfile", place / "names", "-out", place / "host.pem", **quiet)
    if shutil.which("keytool"):
        run("keytool", "-importcert", "-noprompt", "-alias", "authority", "-file", place / "ca.pem", "-keystore", place / "trust.p12",
            "-storetype", "PKCS12", "-storepass", "trusted", **quiet)


class Internet:
    """The servers, in a network namespace at the other end of the cable."""

    def __init__(self, place):
        here = Path(__file__).resolve().parent
        self.process = subprocess.Popen(["unshare", "-n", sys.executable, str(here / "servers.py"), str(place)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hear("apart")
        ip(f"link add here type veth peer name there netns {self.process.pid}")
        ip(f"addr add {HERE}/24 dev here")
        ip("link set here up")
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.hear("ready")

    def hear(self, word):
        line = self.process.stdout.readline().strip()
        if line != word:
            raise SystemExit(f"the servers did not start: {line!r}")

    def came(self):
        """Returns the number of connections that have arrived at any port (proc(5), `PassiveOpens`)."""
        names, values = [line.split() for line in Path(f"/proc/{self.process.pid}/net/snmp").read_text().splitlines() if line.startswith("Tcp:")]
        return int(values[names.index("PassiveOpens")])

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)


def programs(place):
    """Copies Bailiwick's programs to a directory where every user can execute them."""
    place.mkdir()
    given = Path(os.environ["BAILIWICK_PROGRAMS"])
    for name in ("bailiwick", "bailiwick-worker", "sandbox-exec", "tokio-client"):
        if (given / name).exists():
            shutil.copy(given / name, place / name)
    return place / "bailiwick"
