#!/usr/bin/env bash
# The committed rows of the leaderboard (docs/leaderboard.md): every row that the folder lacks. It may
# be broken off at any time and goes on when it is started again.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

usage="usage: scripts/leaderboard_rows.sh [--rows DIR] [--jobs N] [--command FILE] [--suites A,B] [PART...]
  --rows DIR      where the rows lie; default leaderboard/results
  --jobs N        processes side by side; default 1, for more disturb the seconds
  --command FILE  the command; default build/release/bin/doppler-gym
  --suites A,B    default paper-4,paper-8,published,generalize
  PART            heuristics, search, learned, or report (README.md beside the rows, and
                  build/leaderboard.html); default: all, in this order"
rows=leaderboard/results
jobs=1
command=build/release/bin/doppler-gym
suites=paper-4,paper-8,published,generalize
parts=()
while (($#)); do
  case $1 in
    --rows | --jobs | --command | --suites)
      [[ -n ${2:-} ]] || { echo "$1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    heuristics | search | learned | report) parts+=("$1") ;;
    -h | --help) echo "$usage"; exit ;;
    *) echo "unknown argument '$1'" >&2; echo "$usage" >&2; exit 2 ;;
  esac
  shift
done
((${#parts[@]})) || parts=(heuristics search learned report)
[[ -x $command ]] || { echo "$command is missing; build it: scripts/quickstart.sh" >&2; exit 1; }

# run AGENTS TIERS [OPTION...]: small tiers of every suite first
run() {
  local agents=$1 tiers=$2 suite tier
  shift 2
  for tier in ${tiers//,/ }; do
    for suite in ${suites//,/ }; do
      "$command" leaderboard run --suite "$suite" --agents "$agents" --tiers "$tier" --rows "$rows" \
        --jobs "$jobs" --authors DopplerGym --resume "$@"
    done
  done
}

for part in "${parts[@]}"; do
  case $part in
    heuristics) run critical-path,heft,m-etf,partner-list,round-robin,enumerative 1 ;;
    search) run annealing,local-search,rule-search 1,100,1000,10000 ;;
    learned)
      # Trained beforehand on other tasks (scripts/train_generalist.sh), then within the tier.
      training=build/generalist_training.json
      mkdir -p build
      awk 'BEGIN { printf "{\"tasks\": [" } { printf "%s\"%s\"", (NR > 1 ? ", " : ""), $0 }
           END { print "], \"evaluations\": 200000, \"seconds\": 0}" }' scripts/generalist_tasks.txt \
        > "$training"
      run 'doppler(policy=generalist)' 1,100,1000 --training "$training"
      # From nothing, within the tier's own evaluations; one evaluation teaches nothing.
      run doppler 100,1000,10000
      run 'doppler(policy=generalist)' 10000 --training "$training" ;;
    report)
      mkdir -p build
      "$command" leaderboard report --rows "$rows" --html build/leaderboard.html \
        --markdown "$rows/README.md" ;;
  esac
done
