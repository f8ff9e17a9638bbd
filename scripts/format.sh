#!/usr/bin/env bash
# Formats the C++ sources; with --check only says which differ, and exits 1 if any does.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

check=no
case ${1:-} in
  '') ;;
  --check) check=yes ;;
  *) echo "usage: scripts/format.sh [--check]" >&2; exit 2 ;;
esac

# Releases of clang-format differ; Debian 12 has this one.
for program in clang-format-14 clang-format none; do
  if [[ $program == none ]]; then
    echo "clang-format 14 is missing; install the package clang-format of Debian 12" >&2
    exit 1
  fi
  if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then break; fi
done

mapfile -d '' files < <(find . -path ./build -prune -o -type f \
                          \( -name '*.cc' -o -name '*.cu' -o -name '*.h' \) -print0 | sort -z)
if [[ $check == no ]]; then
  "$program" -i "${files[@]}"
  exit
fi
n_different=0
for file in "${files[@]}"; do
  if ! "$program" "$file" | cmp --silent - "$file"; then
    echo "$file is not formatted"
    n_different=$((n_different + 1))
  fi
done
if ((n_different)); then
  echo "$n_different of ${#files[@]} sources differ; run scripts/format.sh"
  exit 1
fi
echo "${#files[@]} sources are formatted"
