"""Package managers: for each a small project, the command of an approved fetch, and that of an offline test."""

import io
import json
import zipfile

# Makes every source file, tarball and built test in the caches print a word when it is executed.
PLANT = r"""
for d in $npm_config_cache $PIP_CACHE_DIR $UV_CACHE_DIR $CARGO_HOME $CARGO_TARGET_DIR $GOMODCACHE $GOCACHE; do
  [ -d "$d" ] || continue
  chmod -R u+w "$d" 2>/dev/null
  find "$d" -type f -name '*.py' -exec sh -c 'for f; do echo "print(\"planted\")" >> "$f"; done' sh {} +
  find "$d" -type f -name '*.go' -exec sh -c 'for f; do echo "func init() { println(\"planted\") }" >> "$f"; done' sh {} +
  find "$d" -type f -path '*content-v2*' -exec sh -c 'for f; do echo planted >> "$f"; done' sh {} +
  find "$d" -type f -path '*/debug/deps/p-*' -perm -100 -exec sh -c 'for f; do printf "#!/bin/sh\necho planted\n" > "$f"; done' sh {} +
done; true"""


class Tool:
    """A package manager. `fetch` is approved with write access and the network, `again` only with write access.
    `test` needs no approval. `seen` has the words that `test` prints if the files that it executes were changed."""

    def __init__(self, name, files, fetch, test, again, says, seen=("planted",), needs=None):
        self.name, self.files, self.fetch, self.test, self.again = name, files, fetch, test, again
        self.says, self.seen, self.needs = says, seen, needs or [name]


def go_module_proxy(directory):
    """Makes a directory that serves as a module proxy, because not every machine can reach a public proxy."""
    at = directory / "proxy" / "example.test" / "greet" / "@v"
    at.mkdir(parents=True)
    source = 'package greet\n\n// Hello is a greeting.\nfunc Hello() string { return "hello" }\n'
    module = "module example.test/greet\n\ngo 1.19\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("example.test/greet@v1.0.0/go.mod", module)
        archive.writestr("example.test/greet@v1.0.0/greet.go", source)
    (at / "v1.0.0.zip").write_bytes(packed.getvalue())
    (at / "v1.0.0.mod").write_text(module)
    (at / "v1.0.0.info").write_text(json.dumps({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}))
    (at / "list").write_text("v1.0.0\n")


TOOLS = [
    Tool(
        "npm",
        {"package.json": json.dumps({"name": "p", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}),
         ".npmrc": "omit-lockfile-registry-resolved=false\n",
         "test.js": "console.log('padded', require('left-pad')('x', 3))\n"},
        "npm install --no-audit --no-fund",
        "mkdir -p $TMPDIR/copy && cp package*.json .npmrc test.js $TMPDIR/copy && cd $TMPDIR/copy && rm -rf node_modules"
        " && npm ci --offline --no-audit --no-fund 2>&1 && node test.js",
        "npm ci --offline --no-audit --no-fund && node test.js",
        "padded",
        ("planted", "corrupted"),
        ["npm", "node"],
    ),
    Tool(
        "pip",
        {"test.py": "import idna; print('encoded', idna.encode('ä.test'))\n"},
        "python3 -m venv .venv && .venv/bin/pip download -q -d wheels idna==3.10 && .venv/bin/pip install -q --no-index -f wheels idna",
        "rm -rf $TMPDIR/site && python3 -m pip install -q --no-index -f wheels --target $TMPDIR/site idna"
        " && PYTHONPATH=$TMPDIR/site python3 test.py",
        ".venv/bin/pip install -q --no-index --force-reinstall -f wheels idna && .venv/bin/python test.py",
        "encoded",
        ("planted",),
        ["python3"],
    ),
    Tool(
        "uv",
        {"pyproject.toml": '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.8"\ndependencies = ["idna==3.10"]\n',
         "test.py": "import idna; print('encoded', idna.encode('ä.test'))\n"},
        "uv sync -q",
        "rm -rf $TMPDIR/env && UV_PROJECT_ENVIRONMENT=$TMPDIR/env UV_LINK_MODE=copy uv run -q --frozen --offline python test.py",
        "rm -rf .venv && UV_LINK_MODE=copy uv run -q --frozen --offline python test.py",
        "encoded",
    ),
    Tool(
        "cargo",
        {"Cargo.toml": '[package]\nname = "p"\nversion = "1.0.0"\nedition = "2021"\n\n[dependencies]\nitoa = "1"\n',
         "src/lib.rs": '#[test]\nfn prints() { println!("number {}", itoa::Buffer::new().format(7)); }\n'},
        "cargo test -q --no-run",
        "cargo test -q --offline -- --nocapture 2>&1",
        "cargo test -q --offline -- --nocapture 2>&1",
        "number 7",
    ),
    Tool(
        "go",
        {"go.mod": "module p\n\ngo 1.19\n\nrequire example.test/greet v1.0.0\n",
         "main.go": 'package main\n\nimport "example.test/greet"\n\nfunc main() { println(greet.Hello()) }\n'},
        "export GOPROXY=file://$PWD/proxy GOFLAGS=-mod=mod GOSUMDB=off; go mod download && go build -o $TMPDIR/p .",
        "GOPROXY=off GOSUMDB=off GOFLAGS=-mod=mod go run . 2>&1",
        "GOPROXY=off GOSUMDB=off GOFLAGS=-mod=mod go run . 2>&1",
        "hello",
    ),
]


def lay_out(tool, directory):
    """Writes the project of the tool."""
    for name, text in tool.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if tool.name == "go":
        go_module_proxy(directory)
