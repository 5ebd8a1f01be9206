// The program for commands that need libtorch. Users call it through `precast`, in the same folder.
#include <c10/util/Logging.h>
#include <malloc.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>

#include "framework/launch/watch_launcher.h"
#include "tools/app/eval.h"
#include "tools/app/list.h"
#include "tools/app/predict.h"
#include "tools/app/serve.h"
#include "tools/app/torch_errors.h"
#include "tools/app/train.h"
#include "tools/bench/torch/commands.h"
#include "tools/cli/command.h"
#include "tools/doctor/torch/torch_versions.h"

namespace {

using precast::tools::Command;
using precast::tools::rethrow_translated;

template <int (*Run)(const std::vector<std::string>&)>
int plain_errors(const std::vector<std::string>& args) {
  try {
    return Run(args);
  } catch (...) {
    rethrow_translated(std::current_exception());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace precast::tools;
  precast::watch_launcher();
  // Activation memory is allocated and freed in each step. By default glibc would return it to the
  // kernel and fault it in again, page by page: 12 % of a step of ResNet-18 on a CPU.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  // Without this, c10d prints a stack trace for each failed connection, although it tries again.
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
  constexpr std::array kCommands = {
      Command{"train", "train a model from a recipe", plain_errors<run_train>},
      Command{"eval", "evaluate weights", plain_errors<run_eval>},
      Command{"predict", "predict the classes of images", plain_errors<run_predict>},
      Command{"bench step", "measure training steps", plain_errors<run_bench_step>},
      Command{"bench stages", "measure the stages of training", plain_errors<run_bench_stages>},
      Command{"bench recipe_loader", "measure the loader of a recipe",
              plain_errors<run_bench_recipe_loader>, /*is_external=*/false, /*is_internal=*/true},
      Command{"bench allreduce", "measure sums over ranks", plain_errors<run_bench_allreduce>},
      Command{"serve", "load the batches of training runs", plain_errors<run_serve>},
      Command{"list", "list the parts that recipes and commands can name", plain_errors<run_list>},
      Command{"versions", "print the versions of libtorch and its libraries as JSON",
              plain_errors<run_versions>, /*is_external=*/false, /*is_internal=*/true},
  };
  const int code = run_command("precast-train", kCommands, argc, argv);
  std::fflush(nullptr);
  // Skips the destructors of libtorch's tables of operators, which take a tenth of a second.
  std::_Exit(code);
}
