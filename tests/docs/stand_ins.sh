# shellcheck shell=bash
# Sourced before each block of shell commands of a document. `precast` runs the real program; commands that would take
# long are shortened, some to a dry run. Programs that a test cannot run are replaced, each with its reason; a command
# that is neither here nor in a minimal Debian fails as unknown.
set -eo pipefail
: "${SOURCE_FOLDER:?}" "${BUILD_FOLDER:?}"
PATH=$BUILD_FOLDER/bin:/usr/bin:/bin
export DATA=.   # of the Slurm script

precast() {
  # The sandbox has its own Fashion-MNIST.
  set -- "${@/#\/usr\/share\/datasets\/fashion-mnist\//}"
  local more=() all="$*"
  # Skeletons are built and trained by examples_test; here the recipe's side of it counts.
  all=${all/--plugins=\[build\/my_net.so\] --model.arch=my_net --model.params=\{width: 64\}/}
  if [[ $all != "$*" ]]; then
    all=${all/\/path\/to\/recipe.yaml/R.yaml}
    # shellcheck disable=SC2086
    set -- $all
  fi
  # Producers of other programs are started by the test `producers`; here the keys and options are checked.
  if [[ $all == *ring://mine* || $all == *zmq://* ]]; then
    case $1 in
      train)
        set -- "${@//ring:\/\/mine/zmq://127.0.0.1:5555}" --dry-run
        all="$*"
        ;;
      bench)
        set -- "${@//zmq:\/\/127.0.0.1:5555/device}"
        set -- "${@//ring:\/\/mine/device}"
        ;;
    esac
  fi
  case $1 in
    train)
      # Several ranks need as many devices, ImageNet's recipes days; rn18_16px diverges on noise.
      if [[ $all == *--dist.* || $all == *configs/imagenet/* || $all == *rn18_16px.yaml* ]]; then more=(--dry-run); fi
      if [[ $all == *configs/quickstart.yaml* ]]; then more=(--data.subset=16 --training.batch_size=8 --training.epochs=1 --validation.resolution=8); fi
      ;;
    # One pass says whether it runs.
    bench)
      case $2 in
        loader) more=(--runs 1 --passes 1) ;;
        decode | stages) more=(--runs 1) ;;
        step) [[ $all == *--model-cost* ]] || more=(--image-size 32 --batch-size 2 --steps 1 --warmup 0 --runs 1) ;;
        allreduce) more=(--runs 1) ;;
      esac
      ;;
    # grid_test and reproduce_test train; here every trial and every row is checked.
    grid | reproduce)
      [[ $all == *--status* || $all == *--slurm-script* ]] || more=(--dry-run)
      # A projection takes ten seconds a row.
      if [[ $all == *--project* ]]; then more=(--rows rn18_16); fi
      ;;
  esac
  case " $all " in *' --dry-run '*) more=() ;; esac
  command precast "$@" "${more[@]}"
}

# torchrun, srun: need their systems (ranks_peers_test starts them). Their command line is checked.
torchrun() {
  while (($#)) && [[ $1 != precast ]]; do shift; done
  precast "${@:2}" --dist.nproc=1
}
# Slurm: what it would get must be a script.
sbatch() { bash -n "$1"; }
scontrol() { :; }
# Containers: what runs in one is tried outside.
docker() {
  [[ -f $SOURCE_FOLDER/Dockerfile ]]
  if [[ $1 == run ]]; then
    while [[ $1 != precast ]]; do shift; done
    "$@"
  fi
}
# Virtual environments with other systems: need the network.
# tasks_test makes the data of the examples, trains on it and runs the twin. ImageNet's number of samples takes minutes: here the
# scripts only parse their arguments.
python3() {
  case "$1 $2" in
    tests/full_size/*) command python3 "$SOURCE_FOLDER/$1" --help >/dev/null ;;
    '-m venv') ;;
    examples/producers/*) [[ -f $SOURCE_FOLDER/$1 ]] ;;
    'make_data.py .') for name in {train,val}.{npz,jsonl}; do cp -r "IMAGENET/${name%.*}" "$name"; done ;;
    'twin.py train.npz') ;;
    *) return 1 ;;
  esac
}

# Only names tests: they run by themselves.
ctest() {
  if [[ $1 == --test-dir ]]; then return; fi   # of a skeleton: examples_test
  # Programs that are not built yet have not told their tests' names.
  if command ctest --test-dir "$BUILD_FOLDER" -N | grep _NOT_BUILT >/dev/null; then return; fi
  command ctest --test-dir "$BUILD_FOLDER" -N "$@" | grep 'Total Tests: [1-9]' >/dev/null
}
# Examples and skeletons are built by examples_test.
cmake() { [[ $1 == --build || -d $SOURCE_FOLDER/$2 || $2 == . ]]; }

# A script of the tree, which installs, builds or compares with another system: it must know the options.
known_options() { # known_options SCRIPT ARGUMENT...
  local script=$1 argument
  [[ -x $script || $script == *.py ]]
  for argument in "${@:2}"; do
    [[ $argument != --* || $argument == --*.*=* ]] || grep -qF -e "${argument%%=*}" "$script" \
      || { echo "$script: no option $argument" >&2; return 1; }
  done
}
# sparse_regression_test builds and runs it; here it must know the options.
sparse/sparse_regression() {
  local argument
  for argument in "$@"; do
    [[ $argument != --* ]] || grep -qF "\"${argument#--}\"" "$SOURCE_FOLDER/examples/sparse_regression/main.cpp" \
      || { echo "sparse_regression: no option $argument" >&2; return 1; }
  done
}
stand_in() { # stand_in PATH ARGUMENT...: a program called by its path in the tree
  case $1 in
    build/bin/kernel_bench) "$BUILD_FOLDER/bin/kernel_bench" --help >/dev/null ;;
    # Tests run by themselves; here some must match.
    build/bin/*) "$BUILD_FOLDER/bin/${1#build/bin/}" --gtest_list_tests "${@:2}" | grep . >/dev/null ;;
    .venv-*/bin/python) if [[ $2 == *.py ]]; then known_options "$SOURCE_FOLDER/$2" "${@:3}"; fi ;;
    .venv-*/bin/*) ;;
    *) known_options "$SOURCE_FOLDER/$1" "${@:2}" ;;
  esac
}
while read -r name; do
  eval "function $name { stand_in $name \"\$@\"; }; function ./$name { stand_in $name \"\$@\"; }"
done < <(
  cd "$SOURCE_FOLDER" && find tools -type f -perm -u+x
  find "$BUILD_FOLDER/bin" -type f -perm -u+x ! -name 'precast*' -printf 'build/bin/%f\n'
  printf '.venv-%s\n' optuna/bin/pip optuna/bin/python peers/bin/pip peers/bin/python
)
