// The program for what needs libtorch. Users call it through `precast`, which lies beside it.
#include <c10/util/Exception.h>

#include <array>
#include <new>
#include <string_view>

#include "framework/core/error.h"
#include "tools/command.h"
#include "tools/eval.h"
#include "tools/list.h"
#include "tools/predict.h"
#include "tools/torch_versions.h"
#include "tools/train.h"

namespace {

using precast::tools::Command;

/// libtorch's exceptions carry a C++ stack trace in what(); people want the sentence.
template <int (*Run)(const std::vector<std::string>&)>
int plain_errors(const std::vector<std::string>& args) {
  try {
    return Run(args);
  } catch (const c10::OutOfMemoryError& error) {
    throw precast::Error(std::string("out of memory on the device: ") +
                             error.what_without_backtrace() +
                             ". Lower training.batch_size or resolution.max_res",
                         precast::ExitCode::out_of_memory);
  } catch (const c10::Error& error) {
    // The CPU allocator has no exception of its own.
    if (std::string_view(error.what()).find("DefaultCPUAllocator") != std::string_view::npos)
      throw std::bad_alloc();
    throw precast::Error(std::string("libtorch: ") + error.what_without_backtrace());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace precast::tools;
  constexpr std::array kCommands = {
      Command{"train", "train a model through a recipe", plain_errors<run_train>},
      Command{"eval", "evaluate weights", plain_errors<run_eval>},
      Command{"predict", "write the logits of every sample", plain_errors<run_predict>},
      Command{"list", "list what a recipe can name", plain_errors<run_list>},
      Command{"versions", "versions of libtorch and of what it uses, as JSON",
              plain_errors<run_versions>},
  };
  return run_command("precast-train", kCommands, argc, argv);
}
