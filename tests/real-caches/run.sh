#!/usr/bin/env bash
# Runs npm, pip, uv, cargo and go with approved fetches, unapproved tests and an attack on their caches. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || { echo "skipped: no python3 on this machine" >&2; exit 0; }
export BAILIWICK="${BAILIWICK:-$here/../../target/debug/bailiwick}"
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/play.py" "$@"
