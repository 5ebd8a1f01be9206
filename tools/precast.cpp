// The torch-free program: data and reporting commands run here; those that need libtorch are handed
// to precast-train, which lies beside it.
#include <array>

#include "tools/bench.h"
#include "tools/command.h"
#include "tools/convert.h"
#include "tools/doctor.h"
#include "tools/exec_sibling.h"
#include "tools/grid.h"
#include "tools/index.h"
#include "tools/inspect.h"
#include "tools/merge.h"
#include "tools/new_plugin.h"
#include "tools/parts_list.h"
#include "tools/preview.h"
#include "tools/report/report.h"
#include "tools/reproduce.h"
#include "tools/select.h"
#include "tools/sizes.h"
#include "tools/verify.h"
#include "tools/write.h"

int main(int argc, char** argv) {
  using namespace precast::tools;
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
      Command{"eval", "evaluate weights",
              [](Args args) -> int { exec_precast_train("eval", args); }},
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
      Command{"new", "make the skeleton of a plug-in", run_new},
      Command{"bench", "measure loading, training and sums over ranks", run_bench},
      Command{"doctor", "show versions and limits, name what is wrong", run_doctor},
  };
  return run_command("precast", kCommands, argc, argv);
}
