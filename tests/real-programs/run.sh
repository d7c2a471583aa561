#!/usr/bin/env bash
# Runs programs of other projects outside of the sandbox and in both tiers, and compares the results. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || { echo "skipped: no python3 on this machine" >&2; exit 0; }
export BAILIWICK="${BAILIWICK:-$here/../../target/debug/bailiwick}"
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/compare.py" "$@"
