#!/usr/bin/env bash
# A batch in N shards by GNU parallel, on this machine or on those of a file. docs/cluster.md says how it is used.
#
#   parallel.sh N TASKS RESULTS [FLAGS of bailiwick batch]
#
# HOSTS=FILE names machines, as for `parallel --sshloginfile`; TASKS and RESULTS have the same paths on all of them. AT_ONCE=K runs K
# shards at a time on each (default: 1).
set -euo pipefail
(($# >= 3)) || { echo "parallel.sh: expected N, TASKS and RESULTS" >&2; exit 2; }
shards=$1 tasks=$2 results=$3
shift 3
mkdir -p "$results"
hosts=()
[[ -z ${HOSTS:-} ]] || hosts=(--sshloginfile "$HOSTS" --env ANTHROPIC_API_KEY --env OPENAI_API_KEY)
exec parallel --will-cite --quote --line-buffer --tagstring 'shard {}' --jobs "${AT_ONCE:-1}" "${hosts[@]}" \
  bailiwick batch "$tasks" --shard "{}/$shards" --output "$results/shard-{}" "$@" ::: $(seq "$shards")
