# shellcheck shell=bash disable=SC2034,SC2154
# The Python side of quickstart.sh and test.sh: an environment, the package in it, its tests.
# To be sourced after setup.sh.

packages_for_python=(python3-venv python3-dev)

# Whether the interpreter $1 is new enough, can make environments and has its headers.
python_serves() {
  "$1" -c 'import ensurepip, pathlib, sys, sysconfig, venv
include = pathlib.Path(sysconfig.get_path("include"))
sys.exit(sys.version_info < (3, 11) or not (include / "Python.h").exists())' 2>/dev/null
}

# Prints the first interpreter on the path that serves.
find_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if command -v "$name" >/dev/null && python_serves "$name"; then
      command -v "$name"
      return
    fi
  done
  return 1
}

# choose_python INSTALL EXTRA...: sets `python` to an interpreter that holds what the package needs
# with these extras. An environment that is activated and holds it all is used; else build/venv, made
# and filled if INSTALL is yes.
choose_python() {
  local install=$1 missing base
  shift
  if [[ -n ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} ]] && python_serves python3 &&
    missing=$(python3 scripts/missing_requirements.py "$@") && [[ -z $missing ]]; then
    python=$(python3 -c 'import sys; print(sys.executable)')
  else
    python=$root/build/venv/bin/python
    if ! python_serves "$python"; then
      if ! base=$(find_python); then
        [[ $install == yes ]] ||
          fail "There is no Python 3.11 or newer with venv and headers (Debian: ${packages_for_python[*]})."
        need_packages "${packages_for_python[@]}"
        base=$(find_python) || fail "The python3 of this system is too old; Python 3.11 is needed."
      fi
      step "make build/venv" "$base" -m venv --clear build/venv
    fi
    missing=$("$python" scripts/missing_requirements.py "$@")
    if [[ -n $missing ]]; then
      [[ $install == yes ]] ||
        fail "$python lacks these packages; install them, or leave --no-install out:" "$missing"
      mapfile -t missing <<<"$missing"
      step "install Python packages" "$python" -m pip install --disable-pip-version-check \
        "${missing[@]}"
    fi
  fi
}

# built_learned: prints the module of learned agents that build/release has, if it is for the PyTorch
# of `python`. To be asked after a build.
built_learned() {
  local module=$root/build/release/bin/doppler_learned.so torch
  torch=$("$python" -c 'import importlib.util as u; print(*u.find_spec("torch").submodule_search_locations)' \
    2>/dev/null) || return 0
  if [[ -f $module ]] && ! grep -qE '^DOPPLER_LEARNED:[A-Z]+=OFF' build/release/CMakeCache.txt &&
    grep -qF "$torch/lib" "$module"; then
    echo "$module"
  fi
}

# install_package [-DNAME=VALUE...]: builds the package with these options for CMake and installs it
# into `python`. It has a build folder of its own; what build/release has compiled comes from the
# compiler cache, or as it is. Does nothing if the environment has it and no source is newer.
install_package() {
  local stamp=build/python/.installed option settings=()
  for option in -DDOPPLER_WARNINGS_AS_ERRORS=ON "$@"; do
    settings+=("--config-settings=cmake.define.${option#-D}")
  done
  # The compiler by the same name, too: the cache tells g++ from c++.
  local compiler learned
  compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/release/CMakeCache.txt)
  # Given empty too: a build folder keeps what it was configured with.
  learned=$(built_learned)
  settings+=("--config-settings=cmake.define.DOPPLER_LEARNED_BUILT=$learned")
  local state="$python $compiler ${settings[*]}"
  if [[ -f $stamp && $(<"$stamp") == "$state" ]] &&
    "$python" -c 'from importlib.metadata import version; version("doppler-gym")' 2>/dev/null &&
    [[ -z $(find . -mindepth 1 \( -path ./build -o -path ./.git -o -path ./tests -o -path ./docs \
              -o -path ./examples -o -path ./benchmarks -o -path ./scripts -o -name __pycache__ \
              -o -name '.*_cache' \) -prune -o -newer "$stamp" -print -quit) ]]; then
    return
  fi
  mkdir -p build/python
  touch "$stamp.begin"
  CXX=$compiler CMAKE_BUILD_PARALLEL_LEVEL=$(n_jobs) step "install doppler_gym" \
    "$python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
    --force-reinstall --config-settings=build-dir=build/python "${settings[@]}" .
  echo "$state" >"$stamp"
  touch -r "$stamp.begin" "$stamp"
}

# run_python_tests NAME INTERPRETER [PYTEST ARGUMENT...]: shows the summary, and on failure what
# failed.
run_python_tests() {
  local start=$SECONDS status=0 log=$logs/tests-$1.log interpreter=$2
  printf '%-34s' "tests $1"
  shift 2
  "$interpreter" -m pytest -q --color=no "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  printf '%5d s\n' $((SECONDS - start))
  if ((status)); then
    tail -n 200 "$log"
    fail "the whole log is $log"
  fi
  tail -n 1 "$log"
}

# choose_rllib INSTALL: sets `python_of_rllib` to the interpreter of build/venv-rllib, made and filled
# if INSTALL is yes. RLlib pins its Gymnasium, so it has an environment of its own; whatever `python`
# holds (PyTorch, the package) and the pin leaves alone is shared with it.
choose_rllib() {
  local install=$1 missing site
  python_of_rllib=$root/build/venv-rllib/bin/python
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  local shared="import site; site.addsitedir('$site')" link
  link=$("$python_of_rllib" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    2>/dev/null)/shared.pth || true
  if [[ ! -f $link || $(<"$link") != "$shared" ]]; then
    [[ $install == yes ]] || fail "build/venv-rllib is missing; leave --no-install out once."
    step "make build/venv-rllib" "$python" -m venv --clear build/venv-rllib
    link=$("$python_of_rllib" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth
    echo "$shared" >"$link"
  fi
  missing=$("$python_of_rllib" scripts/missing_requirements.py rllib)
  if [[ -n $missing ]]; then
    [[ $install == yes ]] ||
      fail "$python_of_rllib lacks these packages; leave --no-install out once:" "$missing"
    mapfile -t missing <<<"$missing"
    step "install RLlib" "$python_of_rllib" -m pip install --disable-pip-version-check \
      "${missing[@]}"
  fi
}
