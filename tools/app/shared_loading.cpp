#include "tools/app/shared_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "data/http/http_client.h"
#include "data/ring/consumer.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/process/stop_signals.h"
#include "tools/app/run_identity.h"
#include "tools/cli/neutral_keys.h"
#include "tools/cli/version.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSizes = "resolution";
constexpr const char* kFiles = "datasets";

/// Keys outside `data` that change batches.
constexpr std::string_view kOtherKeys[] = {"pipeline.train", "model.in_channels", "training.seed",
                                           "plugins.xxh3"};

bool changes_batches(std::string_view key) {
  if (std::ranges::find(kOtherKeys, key) != std::end(kOtherKeys)) return true;
  return key.starts_with("data.") && !is_data_access_key(key);
}

/// A URL, or an absolute path, which does not depend on the current folder.
std::string absolute_location(const std::filesystem::path& path) {
  if (data::is_url(path.string())) return path.string();
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// A message about the first epoch whose images have another size; empty if there is none.
std::string size_difference(const ordered_json& there, const ordered_json& here) {
  for (std::size_t epoch = 0; there.is_array() && epoch < std::min(there.size(), here.size());
       ++epoch) {
    if (there[epoch] != here[epoch])
      return fmt::format("expected {} px in epoch {}, got {} px", there[epoch].dump(), epoch + 1,
                         here[epoch].dump());
  }
  return {};
}

/// @throws ConfigError for several ranks, because a ring contains only the batches of a run with
/// one rank.
void check_ranks(const ResolvedRun& run, const std::string& name) {
  if (run.world > 1)
    run.recipe.refuse("training.distributed",
                      fmt::format("expected one rank with ring '{}', got {}", name, run.world));
}

data::SharedRing ring_of_recipe(const ordered_json& here, const ResolvedRun& run) {
  const RingDataset& ring = run.recipe.ring;
  check_ranks(run, ring.name);
  const auto there = ordered_json::parse(ring.description);
  Diagnostics diagnostics;
  for (const LoadingDifference& difference : compare_loading(there, here)) {
    diagnostics.error(
        run.recipe.origin_of(difference.key == kSizes ? "resolution.min_res" : difference.key),
        difference.key, fmt::format("{} (ring '{}')", difference.text, ring.name));
  }
  diagnostics.throw_if_errors();
  return {.name = ring.name, .description = ring.description, .options = {}};
}

/// The ring of --ring. A ring that does not exist yet is expected to have this run's description.
data::SharedRing ring_of_option(const ordered_json& here, const ResolvedRun& run) {
  data::SharedRing ring{.name = run.ring, .description = loading_text(here), .options = {}};
  std::string reason;
  try {
    if (run.world > 1)
      throw ConfigError(fmt::format("expected a run with one rank, got {}", run.world));
    const std::string description = data::read_ring_description(run.ring);
    const auto there = ordered_json::parse(description, nullptr, /*allow_exceptions=*/false);
    const auto differences = compare_loading(there, here);
    if (differences.empty())
      ring.description = description;
    else
      reason = fmt::format("{}: {}", differences[0].key, differences[0].text);
  } catch (const IoError&) {
    return ring;
  } catch (const Error& error) {
    reason = error.what();
  }
  if (reason.empty()) return ring;
  log_warning(
      "--ring: expected ring '{}' to load the same batches as this run, got a ring that cannot "
      "be used ({}). This run loads its batches itself",
      run.ring, reason);
  return {};
}

}  // namespace

ordered_json describe_loading(const data::BetonReader& reader, const TrainData& data,
                              const ResolvedRun& run, const TrainPlan& plan) {
  ordered_json loading = {{"version", kVersion}, {kFiles, ordered_json::array()}};
  for (const data::BetonReader& file : reader.files())
    loading[kFiles].push_back(absolute_location(file.path()));
  loading["data.train_dataset"] = describe_dataset(reader);
  const ordered_json values = resolved_values(run.recipe, reader, data);
  for (const auto& [key, value] : values.items())
    if (changes_batches(key)) loading[key] = value;
  loading["data.subset"] = describe_subset(values.at("data.subset"), reader);
  loading["training.batch_size"] = run.rank_batch_size();
  loading["training.epochs"] = plan.epochs;
  // Determines the element type of images.
  loading["training.device"] = run.device.is_cuda() ? "cuda" : "cpu";
  loading[kSizes] = plan.image_size_px;
  return loading;
}

std::string loading_text(const ordered_json& loading) {
  return dump_json(loading);
}

std::vector<LoadingDifference> compare_loading(const ordered_json& there,
                                               const ordered_json& here) {
  if (!there.is_object())
    return {{kFiles,
             "expected a ring of `precast serve`, which describes its batches, got a ring without "
             "a description"}};
  std::vector<LoadingDifference> differences;
  const auto text_of = [](const ordered_json& object, const std::string& key) {
    return object.contains(key) ? object.at(key).dump() : "no value";
  };
  for (const auto& [key, value] : here.items()) {
    if (key == kFiles || (there.contains(key) && there.at(key) == value)) continue;
    std::string text;
    if (key == kSizes) {
      text = size_difference(there.contains(key) ? there.at(key) : ordered_json(), value);
      // If the sizes differ in no common epoch, training.epochs differs, which is reported anyway.
      if (text.empty() && there.contains(key)) continue;
    }
    if (text.empty()) text = fmt::format("expected {}, got {}", text_of(there, key), value.dump());
    differences.push_back({key, std::move(text)});
  }
  for (const auto& [key, value] : there.items())
    if (!here.contains(key) && key != kFiles)
      differences.push_back({key, fmt::format("expected {}, got no value", value.dump())});
  return differences;
}

void use_ring(const std::string& name, ResolvedRun& run) {
  const Recipe& recipe = run.recipe;
  if (!recipe.outside.empty())
    recipe.refuse("data.train_dataset",
                  fmt::format("expected files with --ring, got {}", recipe.outside));
  run.ring = name;
}

data::SharedRing shared_ring(const data::BetonReader& reader, const TrainData& data,
                             const ResolvedRun& run, const TrainPlan& plan) {
  if (run.recipe.ring.name.empty() && run.ring.empty()) return {};
  const ordered_json here = describe_loading(reader, data, run, plan);
  data::SharedRing ring =
      run.recipe.ring.name.empty() ? ring_of_option(here, run) : ring_of_recipe(here, run);
  // A run that has received a stop signal does not wait for other processes.
  ring.options.stopped = [] { return StopSignals::requested().load(); };
  // Shorter than the watchdog's limit: otherwise the watchdog would end this run if another run
  // makes no progress.
  const std::chrono::milliseconds stall =
      std::chrono::seconds(run.config().training.stall_timeout_s);
  ring.timeout = std::min(ring.timeout, stall / 2);
  return ring;
}

}  // namespace precast::tools
