"""Servers of one network, and a record of every packet that arrives there.

Arguments: the watched device, a directory to serve, and a certificate with its key, or an empty text. The program writes
"apart", reads a line, waits for the device, opens its ports and writes "ready". For each number on standard input, it waits
for a datagram with that number, and then writes the packets so far as a line of JSON.
"""
import http.server, json, os, queue, socket, socketserver, ssl, struct, subprocess, sys, threading, time

device, directory, certificate, *setup = sys.argv[1:]
packets, markers = [], queue.Queue()
flows = {}
NAMES = "203.0.113.8 dns.example\n"


def note(data):
    version = data[0] >> 4
    if version == 4:
        protocol, to, rest = data[9], socket.inet_ntoa(data[16:20]), data[(data[0] & 15) * 4:]
    elif version == 6:
        protocol, to, rest = data[6], "[%s]" % socket.inet_ntop(socket.AF_INET6, data[24:40]), data[40:]
    else:
        return
    if protocol == 17:
        port, text = struct.unpack(">2xH", rest[:4])[0], rest[8:]
        if port == 1:
            markers.put(text.decode())
        else:
            packets.append(f"udp {to}:{port} {text.decode('latin-1')}")
    elif protocol == 6:
        port, flags, text = struct.unpack(">2xH", rest[:4])[0], rest[13], rest[(rest[12] >> 4) * 4:]
        flow = (to, rest[:4])
        if flags & 0x12 == 2:
            packets.append(f"tcp {to}:{port}")
            flows[flow] = 0
        # An answer to a connection of this network itself belongs to no flow.
        elif text and flows.get(flow, 99) < 20:
            flows[flow] += 1
            packets.append(f"said {to}:{port} {text.decode('latin-1')}")
    elif protocol not in (0, 58):
        packets.append(f"other {to} {protocol}")


def watch(raw):
    while True:
        data, (_, _, kind, *_) = raw.recvfrom(2048)
        if kind != socket.PACKET_OUTGOING and len(data) > 27:
            note(data)


class Site(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=directory)

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/big":
            self.send_response(200)
            self.send_header("content-length", str(64 << 20))
            self.end_headers()
            for _ in range(64):
                self.wfile.write(bytes(1 << 20))
        elif self.path.startswith("/git/"):
            super().do_GET()
        else:
            self.answer()

    def answer(self):
        text = f"{self.command} answered by {self.connection.getsockname()[0]}\n".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_CONNECT = do_OPTIONS = answer


class Server(http.server.ThreadingHTTPServer):
    address_family, request_queue_size, context = socket.AF_INET6, 4096, None

    def get_request(self):
        connection, by = self.socket.accept()
        if self.context:
            connection = self.context.wrap_socket(connection, True, do_handshake_on_connect=False)
        return connection, by

    def handle_error(self, *_):
        pass


def echo(connection):
    with connection:
        try:
            while data := connection.recv(1 << 16):
                connection.sendall(data)
        except OSError:
            pass


def echoes(listener):
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def resolve(resolver):
    """Answers DNS queries for addresses (RFC 1035)."""
    while True:
        question, by = resolver.recvfrom(600)
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]])
            at += 1 + question[at]
        name, kind = b".".join(labels).lower().decode("latin-1"), struct.unpack(">H", question[at + 1:at + 3])[0]
        with open("/mnt/zone") as zone:
            ips = [line.split()[0] for line in (NAMES + zone.read()).splitlines() if line.split()[1:] == [name]]
        found = [socket.inet_pton(socket.AF_INET6 if ":" in ip else socket.AF_INET, ip) for ip in ips]
        found = [ip for ip in found if kind == {4: 1, 16: 28}[len(ip)]]
        head = struct.pack(">5H", 0x8180 if ips else 0x8183, 1, len(found), 0, 0)
        answer = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(ip)) + ip for ip in found)
        resolver.sendto(question[:2] + head + question[12:at + 5] + answer, by)


def start(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()


print("apart", flush=True)
sys.stdin.readline()
for words in setup:
    subprocess.run(["ip", *words.split()], check=not words.startswith("-6"), stderr=subprocess.DEVNULL)
# This port is open, so that the kernel sends no ICMP error.
marked = socket.socket(type=socket.SOCK_DGRAM)
marked.bind(("", 1))
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 33, 263, 6
try:
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
except PermissionError:
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
raw.bind((device, 3))
start(watch, raw)
sites = [Server(("::", 80), Site)]
if certificate:
    sites.append(Server(("::", 443), Site))
    sites[1].context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    sites[1].context.load_cert_chain(certificate)
for site in sites:
    start(site.serve_forever)
for port in (7, 8443):
    start(echoes, socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096))
if device != "lo":
    resolver = socket.socket(type=socket.SOCK_DGRAM)
    resolver.bind(("203.0.113.53", 53))
    start(resolve, resolver)
print("ready", flush=True)
for line in sys.stdin:
    while markers.get(timeout=20) != line.strip():
        pass
    _, lost = struct.unpack("=2I", raw.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    assert not lost, f"{lost} packets are missing in the record"
    print(json.dumps(packets), flush=True)
    packets.clear()
