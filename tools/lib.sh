# shellcheck shell=bash
# Functions for the scripts of this folder and .ci/run. They print steps, times and progress, report failures with their
# location and fix, and configure and build a build folder. Scripts source this file; it is never run.
set -Eeuo pipefail

# ROOT, the two VENVs, BUILD_DIR and the exit codes are read by the scripts that source this file.
# shellcheck disable=SC2034
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034
VENV=$ROOT/.venv LINT_VENV=$ROOT/.venv-lint
BUILD_DIR=${PRECAST_BUILD_DIR:-$ROOT/build}
[[ $BUILD_DIR == /* ]] || BUILD_DIR=$PWD/$BUILD_DIR
# Exit codes of framework/core/error.h.
# shellcheck disable=SC2034
readonly EXIT_FAILED=1 EXIT_USAGE=2 EXIT_IO=5 EXIT_ENVIRONMENT=6

# All clones on a machine share the compiled files in ccache: paths are relative to the tree, and the times of header
# files do not matter. Variables that are already set keep their values.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$ROOT} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-time_macros,pch_defines,include_file_mtime,include_file_ctime}
# After a cache miss, ccache runs only the compiler, without running the preprocessor first.
export CCACHE_DEPEND=${CCACHE_DEPEND:-1}

PROGRAM=$(basename "$0")
STEP=start
HEARTBEAT_PID=

say() { printf '%s: %s\n' "$PROGRAM" "$*"; }

# step WHAT: prints the name of the next step; failures are reported under this name.
step() {
  STEP=$1
  say "$1"
}

# die EXIT_CODE WHAT FIX: prints a problem and its fix, and ends the script. Used for all expected problems.
die() {
  trap - ERR
  printf '%s: error: %s\n' "$PROGRAM" "$2" >&2
  printf '%s: fix: %s\n' "$PROGRAM" "$3" >&2
  exit "$1"
}

stop_heartbeat() {
  [[ -n $HEARTBEAT_PID ]] || return 0
  kill "$HEARTBEAT_PID" 2>/dev/null || true
  wait "$HEARTBEAT_PID" 2>/dev/null || true
  HEARTBEAT_PID=
  if [[ -t 1 ]]; then printf '\r\033[K'; fi
}

unexpected() { # unexpected LINE EXIT_CODE COMMAND
  stop_heartbeat
  printf '%s: error: step "%s" failed (line %s, exit code %s): %s\n' "$PROGRAM" "$STEP" "$1" "$2" "$3" >&2
}
trap 'unexpected "$LINENO" "$?" "$BASH_COMMAND"' ERR
trap stop_heartbeat EXIT
trap 'stop_heartbeat; printf "%s: interrupted in step \"%s\"; run the script again to repeat this step\n" "$PROGRAM" "$STEP" >&2; exit 130' INT TERM

# last_line LOG: prints the last line that is not blank, at most 100 characters of it.
last_line() { tail -c 2000 "$1" 2>/dev/null | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c 1-100; }

# heartbeat LOG: shows the last line of LOG: on a terminal, on one line that is updated; else on a new line every 20 s.
heartbeat() {
  local log=$1 begin=$SECONDS pause=20 never
  if [[ -t 1 ]]; then pause=1; fi
  trap - ERR EXIT
  # Waits without a child process: a sleep that outlives this script would keep its locks and its standard output open.
  exec {never}<> <(:)
  while true; do
    read -rt "$pause" -u "$never" || true
    kill -0 $$ 2>/dev/null || return 0
    if [[ -t 1 ]]; then
      printf '\r\033[K  %4d s  %s' $((SECONDS - begin)) "$(last_line "$log")"
    else
      printf '  %4d s  %s\n' $((SECONDS - begin)) "$(last_line "$log")"
    fi
  done
}

# logged LOG COMMAND...: runs a long command, writes its output to LOG and prints its progress. Returns the exit code of
# the command; if it failed, prints the end of the log.
logged() {
  local log=$1 code=0
  shift
  mkdir -p "$(dirname "$log")"
  : >"$log"
  heartbeat "$log" &
  HEARTBEAT_PID=$!
  "$@" >>"$log" 2>&1 </dev/null || code=$?
  stop_heartbeat
  if ((code != 0)); then
    printf '%s\n' "---- the end of $log ----" >&2
    # Ninja continues with other jobs after a failure, so the first error may be far from the end of the log.
    grep -nE '(^FAILED|error:|ERROR|^E:)' "$log" | head -n 20 >&2 || true
    printf '%s\n' '----' >&2
    tail -n 40 "$log" >&2
  fi
  return "$code"
}

elapsed() { # elapsed BEGIN: "1 min 5 s" since BEGIN, a value of SECONDS (0: the start of the script)
  local s=$((SECONDS - $1))
  if ((s >= 60)); then printf '%d min %d s' $((s / 60)) $((s % 60)); else printf '%d s' "$s"; fi
}

# The number of parallel jobs of a build: PRECAST_JOBS, else the number of cores, or fewer if memory is short (a
# libtorch source needs up to 2 GB to compile).
jobs_to_use() {
  if [[ -n ${PRECAST_JOBS:-} ]]; then
    printf '%s' "$PRECAST_JOBS"
    return
  fi
  local cores by_memory
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  ((by_memory >= 1)) || by_memory=1
  printf '%s' $((cores < by_memory ? cores : by_memory))
}

# configure FOLDER OPTIONS...: runs CMake in FOLDER unless its last run there had the same options (Ninja itself detects
# changes to CMakeLists.txt).
configure() {
  local folder=$1 wanted
  shift
  wanted=$(printf '%s\n' "$ROOT" "$@")
  if [[ -f $folder/build.ninja && $(cat "$folder/.options" 2>/dev/null) == "$wanted" ]]; then return 0; fi
  mkdir -p "$folder" || die "$EXIT_IO" "cannot create $folder" "set PRECAST_BUILD_DIR to a folder that you can write to"
  # Options that are no longer given must not stay in the cache.
  local fresh=()
  if [[ -f $folder/.options ]]; then
    fresh=(--fresh)
    # quickstart empties the file after it has configured a partial build.
    [[ ! -s $folder/.options ]] || say "the build options have changed: everything that depends on them is compiled again"
  fi
  if ! logged "$folder/configure.log" cmake "${fresh[@]}" -S "$ROOT" -B "$folder" -G Ninja "$@"; then
    die "$EXIT_ENVIRONMENT" "CMake could not configure $folder" "read the lines above; if compilers or libraries have changed, remove the folder: rm -r '$folder'"
  fi
  printf '%s\n' "$wanted" >"$folder/.options"
}

# configure_sanitizer asan|tsan: configures BUILD_DIR for the torch-free code under the address and undefined-behaviour
# sanitizers (with the fuzz programs), or under the thread sanitizer. libtorch cannot be loaded under sanitizers.
configure_sanitizer() {
  local options
  # clang compiles code with sanitizers in half the time that g++ takes.
  read -ra options <<<"-DPRECAST_TESTS=ON -DPRECAST_TORCH=OFF -DCMAKE_CXX_COMPILER=clang++-19 ${PRECAST_CMAKE_ARGS:-}"
  if [[ $1 == tsan ]]; then
    options+=(-DPRECAST_SANITIZE=thread)
  else
    options+=('-DPRECAST_SANITIZE=address;undefined' -DPRECAST_FUZZ=ON)
  fi
  configure "$BUILD_DIR" "${options[@]}"
}

# build FOLDER TARGETS...: builds and prints the progress; takes well under a second if nothing has changed.
build() {
  local folder=$1
  shift
  if ! logged "$folder/build.log" cmake --build "$folder" -j "$(jobs_to_use)" --target "$@"; then
    die "$EXIT_FAILED" "the build failed (complete output: $folder/build.log)" "read the errors above; if they say 'Killed', there was too little memory: PRECAST_JOBS=1 $0"
  fi
}
