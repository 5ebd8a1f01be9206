#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/config/schema.h"
#include "tools/app/output_choice.h"

namespace precast::tools {

struct Recipe;

/// The recipe, or the run with its weights, to which the first argument of `eval` and `predict`
/// refers.
struct RunArgument {
  /// The path for load_recipe(): a recipe, or a run's params.json; empty if nothing was given.
  std::string config = {};
  /// Overrides that are applied before those of the command line: the run's model.weights and
  /// model.num_classes, the paths of datasets that were recorded relative to another folder, and
  /// the settings for a single rank.
  std::vector<Override> overrides = {};
  /// The run folder; empty for a recipe.
  std::filesystem::path run = {};
  /// The plug-ins with which the run was trained, and their checksums, as params.json records them.
  std::vector<std::pair<std::filesystem::path, std::string>> plugins = {};
  /// The checkpoint whose weights are used; empty if the weights are the run's final ones or were
  /// given as model.weights.
  std::filesystem::path checkpoint = {};
  /// The fields on which the run was trained, from run.json; empty for a recipe, and for runs of
  /// earlier versions.
  OutputChoice trained = {};

  /// @param recipe read with these overrides. @return a message for each of its plug-ins that has
  /// changed since the run: the run recorded a plug-in of the same file name, but none with the
  /// same checksum.
  [[nodiscard]] std::vector<std::string> changed_plugins(const Recipe& recipe) const;
  /// All overrides in the order in which they apply.
  [[nodiscard]] std::vector<Override> with(const std::vector<Override>& command_line) const;
};

/// Determines what `argument` refers to:
/// - a folder with `params.json`, or that file: a run. Its weights are `final_weights.safetensors`.
///   If the run has not finished, or was resumed after it had finished (it has a valid checkpoint
///   of a later step than the one in summary.json), its weights are those of its newest valid
///   checkpoint;
/// - a folder `ckpt-<step>` of a run, or `checkpoints` for the newest valid one in it;
/// - a weights file of a run (`.safetensors`, `.pt`, `.pth`);
/// - anything else: a recipe.
///
/// A relative path of a dataset in params.json is looked up first in the folder in which the run
/// was started, if that folder is known (from run.json or, if logging.folder is relative, from the
/// run's path), then in the current folder.
/// @param given the overrides of the command line; a run's weights are only searched for if
/// model.weights is not among them.
/// @param folder_hint the hint of the error for a folder that is neither a run nor contains one.
/// @throws ConfigError if a folder or a weights file belongs to no run; CheckpointError if the run
/// has no weights, or the checkpoint is damaged; IoError.
[[nodiscard]] RunArgument read_run_argument(const std::string& argument,
                                            const std::vector<Override>& given,
                                            const std::string& folder_hint = "");

}  // namespace precast::tools
