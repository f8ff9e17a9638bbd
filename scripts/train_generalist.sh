#!/usr/bin/env bash
# Trains the policy that comes with the package, agents/learned/policies/generalist.json, over the
# tasks of generalist_tasks.txt: workloads, sizes, clusters and random graphs, none of the test split
# and none of the paper's own tasks. A few minutes on two cores; goes on where it was.
#   usage: scripts/train_generalist.sh [OUT]
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
out=${1:-$root/build/generalist}
resume=()
[[ ! -e $out/config.json ]] || resume=(--resume)
"$root/build/release/bin/doppler-gym" train --agent doppler --evaluations 200000 --seed 1 \
  --tasks "$(paste -sd, "$root/scripts/generalist_tasks.txt")" --out "$out" "${resume[@]}"
cp "$out/policy.json" "$root/agents/learned/policies/generalist.json"
echo "written to agents/learned/policies/generalist.json; build again to use it"
