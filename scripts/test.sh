#!/usr/bin/env bash
# From a bare clone to the tests' summary: installs what is missing, builds everything and runs the
# tests, those of the Python package too. Safe to run again.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
source scripts/python.sh

usage="usage: scripts/test.sh [--all] [--no-install] [-DNAME=VALUE...]
  --all           the long tests too (label 'long'), and those of RLlib in build/venv-rllib
  --no-install    do not look for missing packages
  -DNAME=VALUE    an option for CMake; it stays for later runs"
install=yes
with_rllib=no
packages=("${packages_to_build[@]}" "${packages_to_format[@]}" "${packages_to_see[@]}")
selection=(--label-exclude long)
python_selection=(-m 'not long')
options=()
for argument in "$@"; do
  case $argument in
    --all)
      selection=() python_selection=() with_rllib=yes
      packages+=("${packages_to_lint[@]}")
      ;;
    --no-install) install=no ;;
    -D?*) options+=("$argument") ;;
    -h | --help) echo "$usage"; exit ;;
    *) fail "unknown argument '$argument'" "$usage" ;;
  esac
done

take_lock
[[ $install == no ]] || need_packages "${packages[@]}"
choose_python "$install" test
[[ $with_rllib == no ]] || choose_rllib "$install"
configure release -DDOPPLER_TESTS=ON "-DPython_EXECUTABLE=$python" "${options[@]}"
build release
install_package "${options[@]}"
run_tests release "${selection[@]}"
run_python_tests python "$python" "${python_selection[@]}"
if [[ $with_rllib == yes ]]; then
  run_python_tests rllib "$python_of_rllib" tests/python/rllib tests/python/test_rllib_env.py \
    tests/python/test_environment.py tests/python/test_vector.py
fi
