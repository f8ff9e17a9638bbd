#!/usr/bin/env bash
# From a bare clone to the tests' summary: installs what is missing, builds everything and runs the
# tests. Safe to run again.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

usage="usage: scripts/test.sh [--all] [--no-install] [-DNAME=VALUE...]
  --all           the long tests too (label 'long')
  --no-install    do not look for missing packages
  -DNAME=VALUE    an option for CMake; it stays for later runs"
install=yes
packages=("${packages_to_build[@]}" "${packages_to_format[@]}")
selection=(--label-exclude long)
options=()
for argument in "$@"; do
  case $argument in
    --all) selection=(); packages+=("${packages_to_lint[@]}") ;;
    --no-install) install=no ;;
    -D?*) options+=("$argument") ;;
    -h | --help) echo "$usage"; exit ;;
    *) fail "unknown argument '$argument'" "$usage" ;;
  esac
done

take_lock
[[ $install == no ]] || need_packages "${packages[@]}"
configure release -DDOPPLER_TESTS=ON "${options[@]}"
build release
run_tests release "${selection[@]}"
