# shellcheck shell=bash disable=SC2034
# What quickstart.sh, test.sh, benchmark.sh and the checks share: packages, steps, configure, build.
# To be sourced by bash; sets `root` and goes there.
set -euo pipefail
unset CDPATH
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root"
logs=$root/build/logs

# Debian's packages, each for what needs it.
packages_to_build=(g++ cmake ninja-build ccache nlohmann-json3-dev libcli11-dev
                   catch2 libeigen3-dev libbenchmark-dev libhdf5-dev zlib1g-dev)
packages_to_see=(chromium)  # the tests of the leaderboard's page
packages_to_format=(clang-format)
packages_to_lint=(clang clang-tidy)
packages_to_sanitize=(clang libclang-rt-14-dev)

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# One build at a time in this folder: a second script waits for the first.
take_lock() {
  mkdir -p "$logs"
  exec 9>"$root/build/.lock"
  flock --nonblock 9 && return
  echo "waiting for another script that builds in $root/build"
  flock 9
}

# One language everywhere: the compiler cache keeps what it holds apart by it, and Python gives its
# child processes another one where none is set, so that the package was compiled anew.
export LC_ALL=C.UTF-8

# What the compiler cache holds serves every clone: paths below this one count as relative.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# step NAME COMMAND...: one line with the seconds. The output goes to a log whose end is shown if
# the command fails.
step() {
  local name=$1 start=$SECONDS status=0
  local log=$logs/${name//[ \/]/-}.log
  shift
  printf '%-34s' "$name"
  "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  if ((status)); then
    printf 'failed after %d s\n' $((SECONDS - start))
    tail -n 60 "$log" >&2
    fail "" "$name failed; the whole log is $log"
  fi
  printf '%5d s\n' $((SECONDS - start))
}

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# need_packages PACKAGE...: installs those that are missing, or says how and exits.
need_packages() {
  local missing=() package as_root=()
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  local advice="  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null ||
    fail "There is no apt-get here. DopplerGym needs what Debian 12 calls: ${missing[*]}" \
         "Where they are installed by other means, give --no-install."
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null || { [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; }; then
      fail "Packages are missing, and this is not root. Run as root, then start this again:" "$advice"
    fi
    sudo -v || fail "Packages are missing. Run as root, then start this again:" "$advice"
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get --quiet -o DPkg::Lock::Timeout=300)
  step "update package lists" "${as_root[@]}" update
  step "install ${#missing[@]} packages" "${as_root[@]}" --yes --no-install-recommends install \
    "${missing[@]}"
}

# As many compilers as there are cores, and about 1.5 GiB of free memory for each.
n_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo)
  ((memory > 0)) || memory=1
  echo $((cores < memory ? cores : memory))
}

# configure PRESET [-DNAME=VALUE...]: a folder that is configured already keeps its options, because
# a preset would overwrite them.
configure() {
  local preset=$1 cache=build/$1/CMakeCache.txt
  shift
  if [[ -f $cache ]] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    step "configure $preset" cmake -S . -B "build/$preset" "$@"
  else
    step "configure $preset" cmake --fresh --preset "$preset" "$@"
  fi
}

# build PRESET [TARGET...]: everything without a target.
build() {
  local preset=$1
  shift
  step "build $preset" cmake --build "build/$preset" --parallel "$(n_jobs)" ${1:+--target "$@"}
}

# run_tests PRESET [CTEST ARGUMENT...]: shows the summary, and on failure what failed.
run_tests() {
  local preset=$1 start=$SECONDS status=0 log=$logs/tests-$1.log prefix=()
  shift
  # Thread sanitizer's memory map needs the addresses where they are without randomization.
  if [[ $preset == tsan ]] && setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    prefix=(setarch "$(uname -m)" --addr-no-randomize)
  fi
  printf '%-34s' "tests $preset"
  "${prefix[@]}" ctest --test-dir "build/$preset" --parallel "$(nproc)" --output-on-failure \
    --no-tests=error --no-label-summary "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  printf '%5d s\n' $((SECONDS - start))
  if ((status)); then
    grep -vE '^( *Start +[0-9]+:| *[0-9]+/[0-9]+ Test +#.* Passed )' "$log" | tail -n 200
    fail "the whole log is $log"
  fi
  sed -n '/% tests passed/,$p' "$log"
}
