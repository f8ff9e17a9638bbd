#!/usr/bin/env bash
# Builds and runs the benchmarks and prints a Markdown table: what was measured against the budgets,
# then everything else. Medians of several repetitions; run it on an idle machine.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

usage="usage: scripts/benchmark.sh [--no-install] [--repetitions N]"
install=yes
repetitions=5
while (($#)); do
  case $1 in
    --no-install) install=no ;;
    --repetitions)
      [[ ${2:-} =~ ^([2-9]|[1-9][0-9]+)$ ]] || fail "--repetitions needs a number, at least 2" "$usage"
      repetitions=$2
      shift ;;
    -h | --help) echo "$usage"; exit ;;
    *) fail "unknown argument '$1'" "$usage" ;;
  esac
  shift
done

take_lock
[[ $install == no ]] || need_packages "${packages_to_build[@]}"
configure release -DDOPPLER_BENCHMARKS=ON
build release benchmark_env benchmark_executor benchmark_graphs

results=$root/build/benchmarks
mkdir -p "$results"
for room in graphs executor env; do
  step "benchmarks $room" "build/release/bin/benchmark_$room" \
    --benchmark_repetitions="$repetitions" --benchmark_report_aggregates_only=true \
    --benchmark_out_format=csv --benchmark_out="$results/$room.csv"
done
if grep --no-filename ',true,' "$results"/*.csv; then
  fail "a benchmark gave a wrong result; see $results"
fi

awk -f scripts/benchmark_table.awk "$results/graphs.csv" "$results/executor.csv" "$results/env.csv"
