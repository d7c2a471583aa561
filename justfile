# What a developer does often; CI runs .ci/run.

# Build and run the demonstration.
demo:
    cargo build --release && target/release/bailiwick demo

# Every test.
test:
    cargo test --workspace --no-fail-fast

# The attacks alone, as root and as a plain user.
escape:
    cargo test -p tests --test escape --test boundary

# The same against the small programs.
escape-small:
    rustup target add {{arch()}}-unknown-linux-musl
    cargo build --workspace --bins
    cargo build --target {{arch()}}-unknown-linux-musl -p sandbox-exec -p worker
    BAILIWICK_PROGRAMS=$PWD/target/{{arch()}}-unknown-linux-musl/debug cargo test -p tests --test escape --test boundary

# What takes long, of which CI runs a part: damaged replies of every API for SECONDS, 2,600 rounds of the kill storm, 1,000 signals,
# 500 kills of a supervisor and of two sessions in one project, 200 rewinds of random work, flips at every byte of a log and 10,000 in a long one, a batch of 500 tasks,
# commands typed at human speed for SECONDS.
soak SECONDS="1800":
    BAILIWICK_SOAK_S={{SECONDS}} nice cargo test --release -p model --test fuzz -- --nocapture
    cargo build --workspace --bins
    BAILIWICK_SOAK_S={{SECONDS}} nice cargo test -p tests --test boundary storm:: a_killed_supervisor tripwire:: remedies:: hidden_places:: -- --nocapture
    BAILIWICK_SOAK_S={{SECONDS}} nice cargo test -p tests --test hosts -- --nocapture
    BAILIWICK_SIGNALS=1000 nice cargo test -p tests --test session signals:: -- --nocapture
    BAILIWICK_KILLS=500 nice cargo test -p tests --test session kills:: -- --nocapture
    BAILIWICK_KILLS=500 nice cargo test -p tests --test session plan_kills -- --nocapture
    BAILIWICK_KILLS=500 nice cargo test -p tests --test boundary tripwire_journal::no_kill -- --nocapture
    BAILIWICK_TYPING={{SECONDS}} nice cargo test -p tests --test screen tui::typing -- --nocapture
    BAILIWICK_REWINDS=200 nice cargo test -p tests --test session rewind:: -- --nocapture
    BAILIWICK_BATCH=500 nice cargo test -p tests --test fleet batch:: -- --nocapture
    BAILIWICK_FLIPS=100 nice cargo test --release -p supervisor --lib flip -- --nocapture

# Records the sessions of fixtures/sessions again; `git diff` is what became different.
record-sessions:
    cargo build --workspace --bins && INSTA_UPDATE=always cargo test -p tests --test session sessions::

# The pictures of README and guide, from scripted sessions.
pictures:
    cargo build --workspace --bins && BAILIWICK_PICTURES=$PWD/docs/images cargo test -p tests --test screen tui::pictures

# Before a commit: format, lints, the crates' own tests, the rules of the house. CI runs the rest.
check: lint
    cargo test --workspace --exclude tests --lib --bins
    cargo test -p tests --test house
    cargo test -p tests --test session -- approvals:: serve::
    cargo test -p tests --test command_line exec::

# Format, lint.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# What is executed at every start, static and of a small C library.
small:
    rustup target add {{arch()}}-unknown-linux-musl
    cargo build --profile dist --target {{arch()}}-unknown-linux-musl -p sandbox-exec -p worker

# The three programs, static, for any container image: in target/static.
static: small
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist --target {{arch()}}-unknown-linux-gnu -p supervisor
    install -D -t target/static target/{{arch()}}-unknown-linux-gnu/dist/bailiwick \
        target/{{arch()}}-unknown-linux-musl/dist/bailiwick-worker target/{{arch()}}-unknown-linux-musl/dist/sandbox-exec

# What is handed out, in target/package: an archive of static programs, a Debian package, checksums.
dist:
    packaging/build

# The three programs, as docs/install.md says.
install PREFIX: small
    cargo build --profile dist -p supervisor
    install -D -t {{PREFIX}}/bin target/dist/bailiwick \
        target/{{arch()}}-unknown-linux-musl/dist/bailiwick-worker target/{{arch()}}-unknown-linux-musl/dist/sandbox-exec

# Measurements beside their floors, of what is installed.
bench NAME="": (install "target/installed")
    cargo build --profile dist -p bench
    target/dist/bailiwick-bench --program target/installed/bin/bailiwick {{NAME}}

# Three real projects, repaired through the release binary.
real-projects:
    cargo build --release && BAILIWICK=target/release/bailiwick tests/real-projects/run.sh

# Programs that others wrote, outside and inside.
real-programs:
    cargo build --workspace --bins && tests/real-programs/run.sh

# npm, pip, uv, cargo and go: approved fetches, unasked tests, an attack on their caches.
real-caches:
    cargo build --workspace --bins && tests/real-caches/run.sh

# curl, git, npm, node, Java, go and others, no proxy named: to a host of the list and to another; `real-clients registries` with the presets.
real-clients *WORDS:
    cargo build --workspace --bins && tests/real-clients/run.sh {{WORDS}}

# MCP servers from npm and PyPI: installed, started without a network, called, in both tiers.
real-mcp:
    cargo build --bins -p worker -p sandbox-exec -p tests && tests/real-mcp/run.sh

# Clients of the Agent Client Protocol from PyPI and npm, a scripted model on loopback.
real-editors:
    cargo build --bins && tests/real-editors/run.sh

# The kernel's own Landlock and seccomp tests, compared with docs/selftests.md.
kernel-selftests:
    cargo build --bins && tests/kernel-selftests/run.sh

# The sandbox on Debian's own kernels, in qemu; see docs/kernels.md.
kernels:
    rustup target add {{arch()}}-unknown-linux-musl
    cargo build --workspace --bins && cargo test -p tests --test escape --no-run
    cargo build --target {{arch()}}-unknown-linux-musl -p sandbox-exec -p worker
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --target {{arch()}}-unknown-linux-gnu -p supervisor
    tests/kernels/run.sh

# Attacks and work in real containers, under the engine's default profile.
containers:
    cargo build --workspace --bins && cargo test -p tests --test escape --no-run && tests/containers/run.sh

# The guide as HTML pages: target/book (needs mdbook).
book:
    packaging/book
