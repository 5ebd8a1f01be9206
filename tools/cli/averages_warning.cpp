#include "tools/cli/averages_warning.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "framework/core/archive/manifest.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/shell_word.h"

namespace precast::tools {
namespace {

/// The warning for a file with averages besides its weights.
std::string averages_besides_warning(const WeightsFile& file) {
  return fmt::format(
      "{0}: the weights{1} are used; the file also contains averages of the weights, under '{2}'. "
      "To use these, write them to a file in Python: averages = torch.load(path, "
      "map_location='cpu', weights_only=False)['{2}']; averages.pop('n_averaged', None); "
      "torch.save(averages, new_path)",
      file.path().string(),
      file.weights_key().empty() ? "" : fmt::format(" under '{}'", file.weights_key()),
      file.averages_key());
}

}  // namespace

std::string averages_warning(const WeightsFile& file) {
  if (!file.averages_key().empty()) return averages_besides_warning(file);
  const auto found = file.metadata().find(std::string(kAveragesKey));
  if (found == file.metadata().end() || found->second.empty()) return {};
  std::string warning = fmt::format(
      "{}: these are the weights without averaging; the run evaluated the averages of its method "
      "{}",
      file.path().string(), found->second);
  const std::filesystem::path folder = file.path().parent_path();
  std::error_code unknown;
  if (std::filesystem::exists(folder / kManifestName, unknown)) {
    warning += fmt::format(". Use them with `precast eval {0}` or `precast convert {0} OUT`",
                           shell_word(folder.empty() ? "." : folder.string()));
  }
  return warning;
}

}  // namespace precast::tools
