#!/usr/bin/env bash
# Drives `bailiwick acp` by clients of the Agent Client Protocol that other projects wrote. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export BAILIWICK="${BAILIWICK:-$(cd "$here/../.." && pwd)/target/debug/bailiwick}"
export PYTHONDONTWRITEBYTECODE=1
place="${PLACE:-$(mktemp -d /var/tmp/real-editors-XXXXXX)}"
python_sdk=0.12.1
typescript_sdk=2.4.0
acpx=0.19.1
rust_sdk=5.2.0
failed=0

for need in python3 npm; do
    command -v "$need" >/dev/null || { echo "skipped: no $need on this machine" >&2; exit 0; }
done

[ -d "$place/venv" ] || python3 -m venv "$place/venv"
"$place/venv/bin/pip" -q install "agent-client-protocol==$python_sdk"
"$place/venv/bin/python" "$here/sdk.py" "$@" || failed=1

python3 "$here/model.py" > "$place/url" &
model=$!
trap 'kill $model' EXIT
until grep -q http "$place/url"; do sleep 0.1; done
url=$(cat "$place/url")

mkdir -p "$place/js"
cp "$here/sdk.mjs" "$place/js"
npm install --silent --prefix "$place/js" "@agentclientprotocol/sdk@$typescript_sdk"
echo
node "$place/js/sdk.mjs" "$url" || failed=1

if command -v cargo >/dev/null; then
    mkdir -p "$place/rust/src"
    cp "$here/sdk.rs" "$place/rust/src/main.rs"
    cat > "$place/rust/Cargo.toml" <<END
[package]
name = "sdk"
version = "0.0.0"
edition = "2024"

[dependencies]
agent-client-protocol = { version = "=$rust_sdk", features = ["process"] }
smol = "2"
tempfile = "3"

[workspace]
END
    CARGO_TARGET_DIR="$place/rust/target" cargo build --quiet --manifest-path "$place/rust/Cargo.toml"
    echo
    "$place/rust/target/debug/sdk" "$url" "$rust_sdk" || failed=1
else
    echo "skipped: no cargo on this machine" >&2
fi

# acpx POLICY FILE: requests one edit under this policy of acpx. FILE shows if the edit was made.
acpx() {
    local home project
    home=$(mktemp -d -p "$place") project=$(mktemp -d -p "$place")
    (cd "$project" && HOME=$home npx --yes -p node@22 -p "acpx@$acpx" -- acpx --timeout 60 "$1" \
        --agent "env HOME=$home ANTHROPIC_API_KEY=x $BAILIWICK acp --base-url $url" exec '#edit') > "$home/said" 2>&1 || true
    local found=denied
    if [ -e "$project/hello.txt" ]; then found=made; fi
    if grep -q '\[done\] end_turn' "$home/said" && [ "$found" = "$2" ]; then
        echo "| an edit, \`$1\` | $2 |"
    else
        echo "| an edit, \`$1\` | **failed** |"
        failed=1
    fi
}

printf '\n| flow | `acpx` %s, Node 22 |\n| --- | --- |\n' "$acpx"
acpx --approve-all made
acpx --deny-all denied
exit $failed
