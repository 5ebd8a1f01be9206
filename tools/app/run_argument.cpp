#include "tools/app/run_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/app/recipe.h"
#include "tools/cli/run_weights.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kManifest = "manifest.json";
/// Maximum number of runs that a message names.
constexpr std::size_t kRunsShown = 5;

bool is_run(const fs::path& folder) {
  return fs::is_regular_file(folder / kRunParams);
}

bool is_checkpoint(const fs::path& folder) {
  return fs::is_regular_file(folder / kManifest);
}

bool is_weights_name(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".safetensors" || extension == ".pt" || extension == ".pth";
}

/// Removes a slash at the end, which would make the file name empty.
fs::path plain_path(const std::string& argument) {
  const fs::path path = fs::path(argument).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/// The JSON object in a file of a run; empty if there is none. @throws IoError
ordered_json read_object(const fs::path& path) {
  if (!fs::exists(path)) return ordered_json::object();
  const auto bytes = read_file(path);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  auto parsed = ordered_json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : ordered_json::object();
}

std::string text_at(const ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The string, or the list of strings, under `key`.
std::vector<std::string> texts_at(const ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  std::vector<std::string> texts;
  for (const ordered_json& item : found->is_array() ? *found : ordered_json::array({*found}))
    if (item.is_string() && item != "") texts.push_back(item);
  return texts;
}

ConfigNode text_node(const std::string& value, const fs::path& source) {
  return ConfigNode::from_text(value, {source.string(), 0, 0});
}

Override set_key(const std::string& key, const std::string& value, const fs::path& source) {
  return {key, text_node(value, source)};
}

bool contains_key(const std::vector<Override>& given, std::string_view key) {
  return std::ranges::find(given, key, &Override::key) != given.end();
}

/// The run folder that a file or a checkpoint folder belongs to; empty if there is none.
fs::path enclosing_run(const fs::path& path) {
  // runs/a/final_weights.pt, runs/a/checkpoints/ckpt-0000000010/model.safetensors
  fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  for (int level = 0; level < 3; ++level, folder = folder.parent_path()) {
    if (!is_run(folder)) continue;
    // The path as the user wrote it, if possible.
    fs::path shown = path;
    for (int up = 0; up <= level; ++up) shown = shown.parent_path();
    return shown.empty() || !is_run(shown) ? folder : shown;
  }
  return {};
}

[[noreturn]] void refuse_folder(const fs::path& folder, std::string hint) {
  std::vector<std::string> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && is_run(entry.path())) runs.push_back(entry.path().string());
  std::ranges::sort(runs);
  if (!runs.empty()) {
    const bool more = runs.size() > kRunsShown;
    runs.resize(std::min(runs.size(), kRunsShown));
    hint = fmt::format("Name one of its runs: {}{}", fmt::join(runs, ", "), more ? ", ..." : "");
  }
  throw ConfigError(fmt::format(
      "{}: expected a recipe, a run folder (which contains {}) or a checkpoint inside a run "
      "folder, got a different folder{}{}",
      folder.string(), kRunParams, hint.empty() ? "" : ". ", hint));
}

/// The folders in which the run may have been started: the folder recorded in run.json and, unless
/// logging.folder is absolute, the folder that follows from the run's path,
/// `<start folder>/<logging.folder>/<logging.run_id>`.
std::vector<fs::path> start_folders(const fs::path& run, const ordered_json& params) {
  std::vector<fs::path> folders;
  const std::string recorded = text_at(read_object(run / "run.json"), "started_in");
  if (!recorded.empty()) folders.emplace_back(recorded);
  const fs::path logging = text_at(params, "logging.folder");
  if (logging.empty() || logging.is_absolute()) return folders;
  // The name of a run may have slashes.
  const fs::path name = text_at(params, "logging.run_id");
  const fs::path runs = (logging / name.parent_path()).lexically_normal();
  fs::path folder = fs::weakly_canonical(run).parent_path();
  for (auto part = runs.end(); part != runs.begin();) {
    --part;
    if (part->empty() || *part == ".") continue;
    if (folder.filename() != *part) return folders;
    folder = folder.parent_path();
  }
  folders.push_back(folder);
  return folders;
}

/// The path of a recorded dataset. A relative path is looked up in the start folders; it is
/// returned unchanged if it is found in none of them, or if it is the same file relative to the
/// current folder.
std::string find_recorded(const std::vector<fs::path>& folders, const fs::path& recorded) {
  if (recorded.is_absolute()) return recorded.string();
  std::error_code none;
  const auto folder = std::ranges::find_if(
      folders, [&](const fs::path& start) { return fs::exists(start / recorded, none); });
  if (folder == folders.end() || fs::equivalent(*folder / recorded, recorded, none))
    return recorded.string();
  return (*folder / recorded).string();
}

/// Adds overrides for the datasets that are found in the run's start folder.
void find_datasets(const ordered_json& params, RunArgument& found) {
  const std::vector<fs::path> folders = start_folders(found.run, params);
  for (const char* key : {"data.train_dataset", "data.val_dataset"}) {
    const std::vector<std::string> recorded = texts_at(params, key);
    ConfigNode files = text_node("", found.config);
    files.kind = ConfigNode::Kind::list;
    bool moved = false;
    for (const std::string& file : recorded) {
      files.items.push_back(text_node(find_recorded(folders, file), found.config));
      moved = moved || files.items.back().scalar != file;
    }
    if (moved) found.overrides.push_back({key, std::move(files)});
  }
}

/// The files of the plug-ins in `params` (params.json, or a recipe with all keys), with checksums.
std::vector<std::pair<fs::path, std::string>> read_plugins(const ordered_json& params) {
  const std::vector<std::string> files = texts_at(params, "plugins");
  const std::vector<std::string> sums = texts_at(params, "plugins.xxh3");
  std::vector<std::pair<fs::path, std::string>> plugins;
  for (std::size_t i = 0; i < std::min(files.size(), sums.size()); ++i)
    plugins.emplace_back(files[i], sums[i]);
  return plugins;
}

/// Sets the weights and their number of classes.
void use_weights(const fs::path& weights, RunArgument& found) {
  found.overrides.push_back(set_key("model.weights", weights.string(), found.run / kRunParams));
  const ordered_json facts = read_object(found.run / "run.json");
  const auto classes = facts.find("classes");
  if (classes != facts.end() && classes->is_number_integer()) {
    found.overrides.push_back(
        set_key("model.num_classes", classes->dump(), found.run / "run.json"));
  }
}

void use_checkpoint(const fs::path& checkpoint, RunArgument& found) {
  found.checkpoint = checkpoint;
  use_weights(checkpoint / kModelFile, found);
}

void use_newest_checkpoint(const fs::path& folder, RunArgument& found) {
  const std::optional<StoredCheckpoint> newest = latest_valid_checkpoint(folder);
  if (!newest) {
    const bool has_final = fs::is_regular_file(found.run / kFinalWeights);
    throw CheckpointError(fmt::format(
        "{}: expected {}a valid checkpoint, got none. Give weights as --model.weights=FILE",
        has_final ? folder.string() : found.run.string(),
        has_final ? "" : fmt::format("{} or ", kFinalWeights)));
  }
  use_checkpoint(newest->path, found);
}

/// The weights to which `path`, a file or folder of the run, refers.
void find_weights(const fs::path& path, RunArgument& found) {
  if (fs::is_regular_file(path) && is_weights_name(path)) {
    if (path.filename() == kModelFile && is_checkpoint(path.parent_path()))
      return find_weights(path.parent_path(), found);
    return use_weights(path, found);
  }
  if (is_checkpoint(path)) {
    static_cast<void>(verify_checkpoint(path));
    return use_checkpoint(path, found);
  }
  if (path.filename() == kCheckpoints) return use_newest_checkpoint(path, found);
  if (!fs::is_regular_file(found.run / kFinalWeights))
    return use_newest_checkpoint(found.run / kCheckpoints, found);
  if (const auto newer = newer_checkpoint(found.run)) return use_checkpoint(newer->path, found);
  use_weights(found.run / kFinalWeights, found);
}

}  // namespace

std::vector<Override> RunArgument::with(const std::vector<Override>& command_line) const {
  std::vector<Override> all = overrides;
  all.insert(all.end(), command_line.begin(), command_line.end());
  return all;
}

std::vector<std::string> RunArgument::changed_plugins(const Recipe& recipe) const {
  std::vector<std::string> changed;
  for (const auto& [file, sum] : read_plugins(recipe.resolved)) {
    const auto has_name = [&](const auto& known) {
      return known.first.filename() == file.filename();
    };
    const auto is_same = [&](const auto& known) { return has_name(known) && known.second == sum; };
    if (std::ranges::none_of(plugins, has_name) || std::ranges::any_of(plugins, is_same)) continue;
    changed.push_back(
        fmt::format("plug-in {}: expected the file with which {} was trained, got a changed one. "
                    "Results may differ from those of the run",
                    file.string(), run.string()));
  }
  return changed;
}

RunArgument read_run_argument(const std::string& argument, const std::vector<Override>& given,
                              const std::string& folder_hint) {
  RunArgument found{.config = argument};
  if (argument.empty()) return found;
  const fs::path path = plain_path(argument);
  std::error_code none;
  if (fs::is_directory(path, none)) {
    found.run = is_run(path) ? path : fs::path();
    if (is_checkpoint(path) || path.filename() == kCheckpoints) found.run = enclosing_run(path);
    if (found.run.empty()) refuse_folder(path, folder_hint);
  } else if (path.filename() == kRunParams && fs::is_regular_file(path, none)) {
    found.run = path.has_parent_path() ? path.parent_path() : ".";
  } else if (is_weights_name(path) && fs::is_regular_file(path, none)) {
    found.run = enclosing_run(path);
    if (found.run.empty()) {
      throw ConfigError(
          fmt::format("{}: expected weights in a run folder with {}, got weights elsewhere. Give "
                      "a recipe, and the weights as --model.weights={}",
                      argument, kRunParams, argument));
    }
  } else {
    return found;
  }
  found.config = (found.run / kRunParams).string();
  // The ranks of the training run are not used: they depend on the hosts of that run.
  found.overrides.push_back(set_key("training.distributed", "0", found.config));
  found.overrides.push_back(set_key("dist.nproc", "", found.config));
  const ordered_json params = read_object(found.config);
  found.plugins = read_plugins(params);
  const ordered_json facts = read_object(found.run / "run.json");
  found.trained = {texts_at(facts, "inputs"), texts_at(facts, "targets")};
  find_datasets(params, found);
  if (!contains_key(given, "model.weights")) find_weights(path, found);
  return found;
}

}  // namespace precast::tools
