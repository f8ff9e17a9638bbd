#!/usr/bin/env bash
# Runs clang-tidy on the sources that differ from the branch `main`, on all of them with --all, or on
# the ones that are named. Needs a configured build folder (build/release).
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

files=()
case ${1:-} in
  --all)
    cd "$root"
    mapfile -t files < <(find graphs executor env datasets agents leaderboard cli tests benchmarks examples \
                           -name '*.cc' | sort) ;;
  -h | --help | -*)
    echo "usage: scripts/lint.sh [--all | FILE...]" >&2
    exit 2 ;;
  '')
    cd "$root"
    mapfile -t files < <({ git diff --name-only --diff-filter=d main -- '*.cc'
                           git ls-files --others --exclude-standard -- '*.cc'; } | sort -u) ;;
  *)
    mapfile -t files < <(readlink -e -- "$@")
    ((${#files[@]} == $#)) || { echo "no such file among: $*" >&2; exit 2; }
    cd "$root" ;;
esac

database=build/release/compile_commands.json
[[ -f $database ]] || { echo "$database is missing; run cmake --preset release" >&2; exit 1; }
known=()
for file in "${files[@]}"; do
  # A source that this configuration does not compile (a fuzzer, another consumer) has no flags.
  if grep -qF "\"file\": \"$root/${file#"$root/"}\"" "$database"; then known+=("$file"); fi
done
if ((${#known[@]} == 0)); then
  echo "nothing to check"
  exit
fi
# Flags of g++ are unknown to clang-tidy.
printf '%s\0' "${known[@]}" | xargs -0 --max-procs="$(nproc)" --max-args=1 \
  clang-tidy --quiet -p "$(dirname "$database")" --extra-arg=-Wno-unknown-warning-option \
  2> >(grep -vE '^([0-9]+ warnings? (and [0-9]+ errors? )?generated|Error while processing)' >&2) ||
  exit 1
echo "${#known[@]} sources are clean"
