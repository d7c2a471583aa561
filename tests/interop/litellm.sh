#!/usr/bin/env bash
# Checks bailiwick against LiteLLM's proxy. See README.md.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
need python3 git
need_bailiwick
environment litellm "litellm[proxy]==${LITELLM_VERSION:-1.106.2}" "mcp==2.3.0"
exec python3 "$here/litellm_checks.py" --bailiwick "$bailiwick" --litellm "$cache/litellm/bin/litellm" "$@"
