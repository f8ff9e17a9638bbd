#!/usr/bin/env bash
# From a bare clone to a first result: installs what is missing, builds the command and the Python
# package and evaluates the agents on the paper's four workloads and on the published graphs. Safe to
# run again.
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
source scripts/python.sh

usage="usage: scripts/quickstart.sh [--no-install] [-DNAME=VALUE...]
  --no-install    do not look for missing packages
  -DNAME=VALUE    an option for CMake; it stays for later runs"
install=yes
options=()
for argument in "$@"; do
  case $argument in
    --no-install) install=no ;;
    -D?*) options+=("$argument") ;;
    -h | --help) echo "$usage"; exit ;;
    *) fail "unknown argument '$argument'" "$usage" ;;
  esac
done

take_lock
[[ $install == no ]] || need_packages "${packages_to_build[@]}"
choose_python "$install"
configure release "-DPython_EXECUTABLE=$python" "${options[@]}"
build release doppler-gym
install_package "${options[@]}"
echo
command=build/release/bin/doppler-gym
tasks=(chainmm@p100x4 ffnn@p100x4 llama-block@p100x4 llama-layer@p100x4
       published/{chainmm,ffnn,llama-block,llama-layer,llama-block-8,llama-layer-8})
"$command" evaluate --tasks "$(IFS=, && echo "${tasks[*]}")"
echo
echo "The command is $root/$command"
echo "The Python package doppler_gym is installed for $python"
