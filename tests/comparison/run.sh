#!/usr/bin/env bash
# Compares `--profile minimal` with mini-swe-agent on the same scripted tasks. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
skip() { echo "skipped: $*" >&2; exit 0; }
for tool in python3 git; do command -v "$tool" >/dev/null || skip "no $tool on this machine"; done
bailiwick="${BAILIWICK:-$here/../../target/release/bailiwick}"
[[ -x $bailiwick ]] || { echo "no $bailiwick: cargo build --release" >&2; exit 1; }
mini="${MINI_SWE_AGENT:-${XDG_CACHE_HOME:-$HOME/.cache}/bailiwick-tests/mini-swe-agent}"
if [[ ! -x $mini/bin/mini ]]; then
    python3 -m venv "$mini" && "$mini/bin/pip" install -q --disable-pip-version-check mini-swe-agent==2.4.6 ||
        skip "mini-swe-agent is not there, and no package index has it"
fi
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/compare.py" --bailiwick "$bailiwick" --python "$mini/bin/python" "$@"
