# shellcheck shell=bash
# Sourced before each block of shell commands of a document. `precast` runs the real program; commands that would take
# long are shortened, some of them to a dry run. Functions replace programs that a test cannot run; a comment gives the
# reason. A command that is neither here nor in a minimal Debian fails as unknown.
set -eo pipefail
: "${SOURCE_FOLDER:?}" "${BUILD_FOLDER:?}"
PATH=$BUILD_FOLDER/bin:/usr/bin:/bin
export DATA=.   # the Slurm script reads it

precast() {
  # Removes the folder of Debian's Fashion-MNIST, because the sandbox has its own, smaller files.
  set -- "${@/#\/usr\/share\/datasets\/fashion-mnist\//}"
  local more=() all="$*"
  # examples_test builds skeletons and trains with them; here, only the recipe is checked.
  all=${all/--plugins=\[build\/my_net.so\] --model.arch=my_net --model.params=\{width: 64\}/}
  if [[ $all != "$*" ]]; then
    all=${all/\/path\/to\/recipe.yaml/R.yaml}
    # shellcheck disable=SC2086
    set -- $all
  fi
  # The test `producers` starts producers; here, only the keys and options are checked.
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
      # Keys like --dist.nproc are for several GPUs, ImageNet's recipes take days, and rn18_16px diverges on noise.
      if [[ $all == *--dist.* || $all == *configs/imagenet/* || $all == *rn18_16px.yaml* ]]; then more=(--dry-run); fi
      if [[ $all == *configs/quickstart.yaml* ]]; then more=(--data.subset=16 --training.batch_size=8 --training.epochs=1 --validation.resolution=8); fi
      ;;
    # One pass is enough to check that the command runs.
    bench)
      case $2 in
        loader) more=(--runs 1 --passes 1) ;;
        decode | stages) more=(--runs 1) ;;
        step) [[ $all == *--model-cost* ]] || more=(--image-size 32 --batch-size 2 --steps 1 --warmup 0 --runs 1) ;;
        allreduce) more=(--runs 1) ;;
      esac
      ;;
    # grid_test and reproduce_test train; here, every trial and every row is only checked.
    grid | reproduce)
      [[ $all == *--status* || $all == *--slurm-script* ]] || more=(--dry-run)
      # A projection takes ten seconds per row.
      if [[ $all == *--project* ]]; then more=(--rows rn18_16); fi
      ;;
  esac
  case " $all " in *' --dry-run '*) more=() ;; esac
  if [[ " $* ${more[*]} " == *' --dry-run '* ]]; then
    # A dry run without GPUs accepts any number of ranks. The sandbox's datasets are repeated, because they have fewer
    # samples than a step on many ranks needs.
    local -x CUDA_VISIBLE_DEVICES=
    if [[ $1 != bench && $all != *zmq://* && $all != *train?samples* ]]; then more+=(--data.repeats=600); fi
  fi
  command precast "$@" "${more[@]}"
}

# torchrun needs PyTorch (ranks_peers_test starts it). Here, only the command line of precast is checked.
torchrun() {
  while (($#)) && [[ $1 != precast ]]; do shift; done
  precast "${@:2}" --dist.nproc=1
}
# Slurm: only the syntax of the script is checked.
sbatch() { bash -n "$1"; }
scontrol() { :; }
# Docker: the container's command runs without a container.
docker() {
  [[ -f $SOURCE_FOLDER/Dockerfile ]]
  if [[ $1 == run ]]; then
    while [[ $1 != precast ]]; do shift; done
    "$@"
  fi
}
# Virtual environments with other systems need the network. tasks_test makes the data of the examples, trains on it and
# runs the twin. The scripts of full_size take minutes; here, they only print their help.
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

# Checks only that the tests exist; they run on their own.
ctest() {
  if [[ $1 == --test-dir ]]; then return; fi   # the tests of a skeleton, which examples_test runs
  # ctest does not list the tests of programs that are not built yet.
  if command ctest --test-dir "$BUILD_FOLDER" -N | grep _NOT_BUILT >/dev/null; then return; fi
  command ctest --test-dir "$BUILD_FOLDER" -N "$@" | grep 'Total Tests: [1-9]' >/dev/null
}
# Examples and skeletons are built by examples_test.
cmake() { [[ $1 == --build || -d $SOURCE_FOLDER/$2 || $2 == . ]]; }

# A script of the tree that installs, builds or compares with another system is not run, but must contain the options.
known_options() { # known_options SCRIPT ARGUMENT...
  local script=$1 argument
  [[ -x $script || $script == *.py ]]
  for argument in "${@:2}"; do
    [[ $argument != --* || $argument == --*.*=* ]] || grep -qF -e "${argument%%=*}" "$script" \
      || { echo "$script: no option $argument" >&2; return 1; }
  done
}
# sparse_regression_test builds and runs this program; here, its source must contain the options.
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
    # Tests run on their own; here, at least one test must match.
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
