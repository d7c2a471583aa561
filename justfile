# What a developer does often; CI runs .ci/run.

# Build and run the demonstration.
demo:
    cargo build --release && target/release/bailiwick demo

# Every test.
test:
    cargo test --workspace

# The attacks alone, as root and as a plain user.
escape:
    cargo test -p tests --test escape --test secrets --test life --test storm --test protocol

# Format, lint.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Static worker and sandbox-exec, for any container image.
static:
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --target x86_64-unknown-linux-gnu -p sandbox-exec -p worker

# Measurements beside their floors.
bench NAME="":
    cargo build --release && target/release/bailiwick bench {{NAME}}

# Three real projects, repaired through the release binary.
real-projects:
    cargo build --release && BAILIWICK=target/release/bailiwick tests/real-projects/run.sh
