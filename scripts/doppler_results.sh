#!/usr/bin/env bash
# The runs behind what docs/ says of DOPPLER and of the search agents: every row that the folder
# lacks (docs/result-rows.md), then the table and the curves beside it. It may be broken off at any
# time and goes on when it is started again.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

usage="usage: scripts/doppler_results.sh [--rows DIR] [--jobs N] [--command FILE] [PART...]
  --rows DIR      where the rows lie; default build/doppler-results/rows
  --jobs N        runs side by side; default 1, for more disturb the seconds
  --command FILE  the command; default build/release/bin/doppler-gym
  PART            baselines (agents that do not learn), doppler, paper (DOPPLER as published), or
                  show (table and curves of the rows that there are); default: all, in this order"
rows=build/doppler-results/rows
jobs=1
command=build/release/bin/doppler-gym
parts=()
while (($#)); do
  case $1 in
    --rows | --jobs | --command)
      [[ -n ${2:-} ]] || { echo "$1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    baselines | doppler | paper | show) parts+=("$1") ;;
    -h | --help) echo "$usage"; exit ;;
    *) echo "unknown argument '$1'" >&2; echo "$usage" >&2; exit 2 ;;
  esac
  shift
done
((${#parts[@]})) || parts=(baselines doppler paper show)
[[ -x $command ]] || { echo "$command is missing; build it: scripts/quickstart.sh" >&2; exit 1; }
mkdir -p "$(dirname "$rows")"

published=published/chainmm,published/ffnn,published/llama-block,published/llama-layer
published+=,published/llama-block-8,published/llama-layer-8
machines=chainmm@p100x4,ffnn@p100x4,llama-block@p100x4,llama-layer@p100x4
machines+=,llama-block@v100x8,llama-layer@v100x8

# results AGENTS TASKS SEEDS BUDGETS
results() {
  "$command" results run --rows "$rows" --jobs "$jobs" --agents "$1" --tasks "$2" --seeds "$3" \
    --evaluations "$4"
}

for part in "${parts[@]}"; do
  case $part in
    baselines)
      for agent in critical-path partner-list annealing rule-search; do
        results "$agent" "$published" 3 1000,10000
        results "$agent" "$machines" 1 1000,10000
      done ;;
    doppler)
      results doppler "$published" 3 1000,10000
      results doppler "$machines" 1 1000,10000 ;;
    paper)
      # Its 2,000 + 8,000 episodes, each at most one evaluation.
      results 'doppler(preset=paper)' published/ffnn,published/llama-layer 3 10000 ;;
    show)
      "$command" results table --rows "$rows" --markdown --out "$(dirname "$rows")/table.md"
      "$command" results table --rows "$rows" --json --out "$(dirname "$rows")/table.json"
      "$command" results table --rows "$rows"
      "$command" results plot --rows "$rows" --out "$(dirname "$rows")/curves" ;;
  esac
done
