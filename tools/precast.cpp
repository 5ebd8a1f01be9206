// The torch-free program: data and reporting commands run here; those that need libtorch are handed to
// precast-train, which lies beside it.
#include <array>

#include "tools/command.h"
#include "tools/doctor.h"
#include "tools/inspect.h"
#include "tools/write.h"

int main(int argc, char** argv) {
  using namespace precast::tools;
  constexpr std::array kCommands = {
      Command{"write", "write images into a .beton file", run_write},
      Command{"inspect", "show what a .beton file holds", run_inspect},
      Command{"doctor", "show versions and limits, name what is wrong", run_doctor},
  };
  return run_command("precast", kCommands, argc, argv);
}
