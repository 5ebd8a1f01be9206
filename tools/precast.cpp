// The torch-free program. Commands that need libtorch are passed to precast-train, in the same
// folder.
#include <array>

#include "tools/bench/decode.h"
#include "tools/bench/loader.h"
#include "tools/bench/ring.h"
#include "tools/cli/command.h"
#include "tools/cli/exec_sibling.h"
#include "tools/commands/convert.h"
#include "tools/commands/index.h"
#include "tools/commands/inspect.h"
#include "tools/commands/merge.h"
#include "tools/commands/new_recipe.h"
#include "tools/commands/preview.h"
#include "tools/commands/select.h"
#include "tools/commands/sizes.h"
#include "tools/commands/verify.h"
#include "tools/commands/write.h"
#include "tools/doctor/doctor.h"
#include "tools/experiments/grid/grid.h"
#include "tools/experiments/reproduce/reproduce.h"
#include "tools/help/help.h"
#include "tools/plugins/new_plugin.h"
#include "tools/plugins/parts_list.h"
#include "tools/report/report.h"

namespace precast::tools {
namespace {

using Args = const std::vector<std::string>&;

int run_list_here(Args args) {
  if (!has_precast_train()) return run_list_data(args);
  exec_precast_train("list", args);
}

constexpr bool kExternal = true;

constexpr std::array kCommands = {
    Command{"write", "write images into a .beton file", run_write},
    Command{"index", "index JPEGs, so that crops are decoded without the data before them",
            run_index},
    Command{"inspect", "show the contents of a .beton file", run_inspect},
    Command{"verify", "check .beton files for damage", run_verify},
    Command{"select", "write some samples of a .beton file, or split it", run_select},
    Command{"merge", "write several .beton files as one", run_merge},
    Command{"sizes", "estimate the size of a dataset in each storage mode", run_sizes},
    Command{"preview", "show images as the model sees them", run_preview},
    Command{"convert", "convert weights between .pt and .safetensors", run_convert},
    Command{"train", "train a model from a recipe",
            [](Args args) -> int { exec_precast_train("train", args); }, kExternal},
    Command{"eval", "evaluate weights", [](Args args) -> int { exec_precast_train("eval", args); },
            kExternal},
    Command{"predict", "predict the classes of images",
            [](Args args) -> int { exec_precast_train("predict", args); }, kExternal},
    Command{"serve", "load training batches once for several training runs",
            [](Args args) -> int { exec_precast_train("serve", args); }, kExternal},
    Command{"grid", "train a recipe with every combination of some values", run_grid},
    Command{"reproduce", "train the rows of a published table", run_reproduce},
    Command{"list", "list the parts that recipes and commands can name", run_list_here, kExternal},
    Command{"report", "show one run, or several side by side, as a page", run_report},
    Command{"new recipe", "create a recipe for a dataset", run_new_recipe},
    Command{"new plugin", "create the skeleton of a plug-in", run_new_plugin},
    Command{"bench loader", "measure how fast batches are loaded", run_bench_loader},
    Command{"bench decode", "measure how fast stored JPEGs are decoded and resized",
            run_bench_decode},
    Command{"bench ring", "measure how fast a ring delivers batches", run_bench_ring},
    Command{"bench step", "measure training steps on synthetic or real data, on one rank or many",
            [](Args args) -> int { exec_precast_train("bench step", args); }, kExternal},
    Command{"bench stages", "find what slows training down: reading, processing or the steps",
            [](Args args) -> int { exec_precast_train("bench stages", args); }, kExternal},
    Command{"bench allreduce", "measure how fast gradients are summed over the ranks",
            [](Args args) -> int { exec_precast_train("bench allreduce", args); }, kExternal},
    Command{"doctor", "show versions, limits, and problems with their fixes", run_doctor},
    Command{"completion", "print a script that completes commands in bash or zsh", run_completion},
    Command{"help", "describe a command; print manual pages", run_help},
};

}  // namespace
}  // namespace precast::tools

int main(int argc, char** argv) {
  return precast::tools::run_command("precast", precast::tools::kCommands, argc, argv);
}
