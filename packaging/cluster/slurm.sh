#!/usr/bin/env bash
#SBATCH --job-name=bailiwick
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
# One shard of a batch for each task of an array. docs/cluster.md says how it is used.
#
#   sbatch [--array=1-N] slurm.sh TASKS RESULTS [FLAGS of bailiwick batch]
#
# The results of shard I are RESULTS/shard-I. SHARDS=N says how many there are where only some of an array are begun again.
set -euo pipefail
(($# >= 2)) || { echo "slurm.sh: expected TASKS and RESULTS" >&2; exit 2; }
tasks=$1 results=$2
shift 2
shard=${SLURM_ARRAY_TASK_ID:?no task of an array: sbatch --array=1-N}
shards=${SHARDS:-${SLURM_ARRAY_TASK_COUNT:?no array: sbatch --array=1-N}}
mkdir -p "$results"
# In the place of this shell, so that it gets the signal that comes before the end of the time.
exec bailiwick batch "$tasks" --shard "$shard/$shards" --output "$results/shard-$shard" "$@"
