// The torch-free program: data and reporting commands run here; those that need libtorch are passed
// to precast-train, in the same folder.
#include <array>

#include "tools/bench/bench.h"
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
#include "tools/plugins/new_plugin.h"
#include "tools/plugins/parts_list.h"
#include "tools/report/report.h"

namespace precast::tools {
namespace {

using Args = const std::vector<std::string>&;

constexpr std::array kCommands = {
    Command{"write", "write images into a .beton file", run_write},
    Command{"index", "find the places that let crops of JPEGs be decoded alone", run_index},
    Command{"inspect", "show what a .beton file holds", run_inspect},
    Command{"verify", "check that .beton files are whole", run_verify},
    Command{"select", "write some samples of a .beton file, or its parts", run_select},
    Command{"merge", "write several .beton files as one", run_merge},
    Command{"sizes", "show how large a dataset becomes in many ways", run_sizes},
    Command{"preview", "show what the model sees", run_preview},
    Command{"convert", "convert weights between .pt and .safetensors", run_convert},
    Command{"train", "train a model through a recipe",
            [](Args args) -> int { exec_precast_train("train", args); }},
    Command{"eval", "evaluate weights", [](Args args) -> int { exec_precast_train("eval", args); }},
    Command{"predict", "write the logits of every sample",
            [](Args args) -> int { exec_precast_train("predict", args); }},
    Command{"grid", "train a recipe with every combination of some values", run_grid},
    Command{"reproduce", "train the rows of a published table", run_reproduce},
    Command{"list", "list what a recipe can name",
            [](Args args) -> int {
              if (!has_precast_train()) return run_list_data(args);
              exec_precast_train("list", args);
            }},
    Command{"report", "show runs, one or several, as a page", run_report},
    Command{"new", "make a recipe for a dataset, or the skeleton of a plug-in",
            [](Args args) {
              return !args.empty() && args[0] == "recipe" ? run_new_recipe(args) : run_new(args);
            }},
    Command{"bench", "measure loading, training and sums over ranks", run_bench},
    Command{"doctor", "show versions and limits, name what is wrong", run_doctor},
};

}  // namespace
}  // namespace precast::tools

int main(int argc, char** argv) {
  return precast::tools::run_command("precast", precast::tools::kCommands, argc, argv);
}
