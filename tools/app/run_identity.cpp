#include "tools/app/run_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/sums.h"
#include "data/order/subset.h"
#include "framework/core/archive/tensor_record.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "tools/cli/neutral_keys.h"
#include "tools/cli/version.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Keys (or sections, ending in a dot) that may have another value when a run is resumed, in
/// addition to the neutral keys (tools/cli/neutral_keys.h).
constexpr std::string_view kResumableKeys[] = {
    "logging.",
    "checkpoint.",
    "dist.world_size",
    "dist.nproc",
    "dist.variable_update",
    "dist.zero",
    "versions.",
    // Only the paths; plugins.xxh3 identifies the contents.
    "plugins",
    "model.weights",
    "model.weights_check",
    "model.kernels",
    "loss.kernels",
    "optimizer.kernels",
    // Compared as part of dataset.train, because earlier versions do not have this key.
    "data.batches_per_epoch",
    "data.verify",
    "data.fields",
    "validation.batch_size",
    "validation.metrics",
    // Compared as plan.best_metric.
    "validation.best_metric",
    // Compared as plan.global_batch_size.
    "training.batch_size",
    "training.global_batch_size",
    "training.distributed",
    "training.device",
    "training.cuda_graphs",
};

bool may_differ_on_resume(std::string_view key) {
  return is_neutral_key(key) || std::ranges::any_of(kResumableKeys, [&](std::string_view entry) {
           return entry.ends_with('.') ? key.starts_with(entry) : key == entry;
         });
}

/// Whether the key is an option of a part. There are two reasons why only one of two runs may have
/// such a key. The runs use different parts, which the comparison of the parts' names shows; or an
/// earlier version recorded one of the runs: earlier versions recorded the options of every
/// optimiser, schedule and order, but no options of losses.
bool is_part_option(std::string_view key) {
  return key.starts_with("optimizer.") || key.starts_with("lr.") || key.starts_with("loss.") ||
         key == "training.momentum" || key == "data.weights" || key == "data.weight_field";
}

/// Whether the comparison ignores the key if only one of the two runs has it.
bool may_be_missing(std::string_view key) {
  // Earlier versions did not record these keys.
  return key == "plan.best_metric" || key == "plan.precision" || is_part_option(key);
}

/// Earlier versions recorded switches as 0 and 1.
bool is_same(const ordered_json& there, const ordered_json& here) {
  if (there.is_number_integer() && here.is_boolean())
    return there.get<std::int64_t>() == static_cast<std::int64_t>(here.get<bool>());
  return there == here;
}

/// Keys that determine how an epoch is evaluated.
constexpr std::string_view kEvaluationKeys[] = {
    "dataset.val",   "pipeline.val", "validation.resolution", "validation.lr_tta",
    "data.jpeg_dct", "data.inputs",  "data.targets"};

/// Whether the key changes the value of `val_loss`.
bool determines_loss(std::string_view key) {
  return key == "training.loss" || key == "training.label_smoothing" || key.starts_with("loss.");
}

ordered_json evaluation_part(const ordered_json& identity) {
  const auto best = identity.find("plan.best_metric");
  const bool by_loss = best != identity.end() && *best == "val_loss";
  ordered_json part = ordered_json::object();
  for (const auto& [key, value] : identity.items()) {
    if (std::ranges::find(kEvaluationKeys, key) != std::end(kEvaluationKeys) ||
        (by_loss && determines_loss(key)))
      part[key] = value;
  }
  return part;
}

void add_versions(ordered_json& identity) {
  identity["versions.precast"] = kVersion;
  identity["versions.torch"] = TORCH_VERSION;
}

}  // namespace

std::string run_id_of(const TrainConfig& config) {
  if (!config.logging.run_id.empty() || config.checkpoint.resume == "never")
    return config.logging.run_id;
  if (const char* job = std::getenv("SLURM_JOB_ID"); job != nullptr && *job != '\0')
    return fmt::format("slurm-{}", job);
  throw ConfigError(
      "logging.run_id: missing. checkpoint.resume needs the name of the run to resume, as "
      "--logging.run_id=NAME");
}

ordered_json describe_dataset(const data::BetonReader& reader) {
  std::string text;
  for (const data::BetonReader& file : reader.files()) {
    text += fmt::format("{}{} samples, {} bytes, metadata {}", text.empty() ? "" : "; ",
                        file.size(), file.file_bytes(), file.fingerprint());
  }
  return text;
}

ordered_json describe_subset(const ordered_json& subset, const data::BetonReader& train) {
  if (!subset.is_string()) return subset;
  return data::subset_identity(subset.get<std::string>(), train.size(), train.path().string());
}

ordered_json describe_identity(const ordered_json& values, const TrainPlan& plan,
                               const data::BetonReader& train, const data::BetonReader& val,
                               const Model& model) {
  ordered_json identity = values;
  if (values.contains("data.subset"))
    identity["data.subset"] = describe_subset(values.at("data.subset"), train);
  identity["plan.global_batch_size"] = plan.global_batch_size;
  identity["plan.classes"] = plan.model.num_classes;
  identity["dataset.train"] = describe_dataset(train);
  identity["dataset.val"] = describe_dataset(val);
  for (const NamedTensor& parameter : model.parameters()) {
    identity["parameter " + parameter.name] = shape_text(parameter.tensor.sizes().vec());
  }
  add_versions(identity);
  return identity;
}

ordered_json describe_identity(const ordered_json& values, const Model& model) {
  ordered_json identity = values;
  for (const NamedTensor& entry : model.state()) {
    const at::Tensor bytes = entry.tensor.detach().cpu().contiguous();
    const auto* first = static_cast<const std::byte*>(bytes.const_data_ptr());
    identity["weights " + entry.name] =
        fmt::format("xxh3 {:016x}", data::hash_of({first, bytes.nbytes()}));
  }
  add_versions(identity);
  return identity;
}

void check_same_identity(Communicator& ranks, const ordered_json& identity) {
  // Paths may contain bytes that are not UTF-8.
  const std::vector<std::string> all = ranks.all_gather(dump_json(identity));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto differences =
        compare_identities(ordered_json::parse(all[rank]), ordered_json::parse(all[0]));
    if (differences.empty()) continue;
    throw ConfigError(
        fmt::format("ranks: expected the same recipe, data and version on all ranks, but rank {} "
                    "(there) differs from rank 0 (here):\n  {}",
                    rank, fmt::join(differences, "\n  ")));
  }
}

std::vector<std::string> compare_identities(const ordered_json& there, const ordered_json& here) {
  std::vector<std::string> differences;
  for (const auto& [key, value] : here.items()) {
    const auto found = there.find(key);
    if (found == there.end()) {
      if (may_be_missing(key)) continue;
      differences.push_back(fmt::format("{}: nothing there, {} here", key, value.dump()));
    } else if (!is_same(*found, value)) {
      differences.push_back(fmt::format("{}: {} there, {} here", key, found->dump(), value.dump()));
    }
  }
  for (const auto& [key, value] : there.items()) {
    if (!here.contains(key) && !may_be_missing(key))
      differences.push_back(fmt::format("{}: {} there, nothing here", key, value.dump()));
  }
  return differences;
}

bool has_same_evaluation(const ordered_json& there, const ordered_json& here) {
  const ordered_json before = evaluation_part(there);
  ordered_json now = evaluation_part(here);
  // Earlier versions recorded these keys under other names.
  for (const char* key : {"data.inputs", "data.targets"})
    if (!before.contains(key)) now.erase(key);
  return compare_identities(before, now).empty();
}

ordered_json resumable_part(const ordered_json& identity) {
  // Keys that earlier versions recorded under another name and with a single value.
  const std::map<std::string, std::string, std::less<>> now = {
      {"data.image_field", "data.inputs"}, {"data.label_field", "data.targets"}};
  ordered_json part = ordered_json::object();
  for (const auto& [key, value] : identity.items()) {
    // Runs that were started before this key existed used images with 3 channels.
    if (key == "model.in_channels" && value == 3) continue;
    const auto renamed = now.find(key);
    if (renamed != now.end()) {
      part[renamed->second] = value.is_string() && value.get_ref<const std::string&>().empty()
                                  ? ordered_json::array()
                                  : ordered_json::array({value});
    } else if (!may_differ_on_resume(key)) {
      part[key] = value;
    }
  }
  return part;
}

}  // namespace precast::tools
