#include "tools/app/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "tools/app/outside_loading.h"
#include "tools/app/recipe_parts.h"
#include "tools/app/recipe_trial.h"
#include "tools/app/train_config_check.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/recipe_file.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

ConfigNode map_node(const std::vector<std::pair<std::string, std::string>>& values) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::map;
  for (const auto& [key, value] : values)
    node.entries.push_back({key, {}, ConfigNode::from_text(value)});
  return node;
}

constexpr const char* kSmoothingKey = "training.label_smoothing";

/// The methods that ffcv-imagenet's keys select. @param smooths_labels whether
/// training.label_smoothing applies.
std::vector<PartRequest> legacy_methods(const TrainConfig& config, const Schema& schema,
                                        bool smooths_labels) {
  std::vector<PartRequest> requests;
  const auto add_switch = [&](const char* method, const char* key) {
    requests.push_back({method, {}, schema.origin(key), key});
  };
  if (config.training.use_blurpool) add_switch("blurpool", "training.use_blurpool");
  if (config.training.channels_last) add_switch("channels_last", "training.channels_last");
  const auto& resolution = config.resolution;
  requests.push_back({"progressive_resize",
                      map_node({{"min_res", std::to_string(resolution.min_res)},
                                {"max_res", std::to_string(resolution.max_res)},
                                {"start_ramp", std::to_string(resolution.start_ramp)},
                                {"end_ramp", std::to_string(resolution.end_ramp)}}),
                      {},
                      "resolution"});
  if (smooths_labels && config.training.label_smoothing > 0) {
    requests.push_back(
        {"label_smoothing",
         map_node({{"smoothing", fmt::format("{}", config.training.label_smoothing)}}),
         schema.origin(kSmoothingKey), kSmoothingKey});
  }
  return requests;
}

/// The option of the loss that the method label_smoothing sets.
constexpr std::string_view kSmoothing = "loss.label_smoothing";

/// The methods of the list `methods`, and those of legacy_methods() that the list does not contain.
/// A method of the list whose ffcv-imagenet key is given too is an error.
std::vector<PartRequest> all_methods(const TrainConfig& config, const Schema& schema,
                                     Diagnostics& diagnostics) {
  const std::vector<PartRequest> listed = parse_part_list(config.methods, "methods", diagnostics);
  for (const PartRequest& request : listed) {
    const auto keyed = std::ranges::find(keyed_methods(), request.name, &KeyedMethod::name);
    if (keyed == keyed_methods().end()) continue;
    for (const std::string& key : keyed->keys()) {
      if (!schema.given(key)) continue;
      diagnostics.error(request.origin, request.key,
                        fmt::format("'{}' is given twice: here and as {} ({})", request.name, key,
                                    schema.origin(key).text()));
    }
  }
  // The default of training.label_smoothing applies only if the loss has the option label_smoothing
  // and the recipe does not set this option.
  const bool has_option = schema.reads(kSmoothing) && !schema.given(kSmoothing);
  std::vector<PartRequest> all;
  for (const PartRequest& legacy :
       legacy_methods(config, schema, has_option || schema.given(kSmoothingKey))) {
    if (std::ranges::find(listed, legacy.name, &PartRequest::name) == listed.end())
      all.push_back(legacy);
  }
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto first = std::ranges::find(listed, listed[i].name, &PartRequest::name);
    if (first != listed.begin() + static_cast<std::ptrdiff_t>(i)) {
      diagnostics.error(
          listed[i].origin, listed[i].key,
          fmt::format("'{}' is given twice, first at {}", listed[i].name, first->origin.text()));
    }
    all.push_back(listed[i]);
  }
  return all;
}

void make_methods(Recipe& recipe, const std::vector<PartRequest>& requests,
                  const Registries& registries, Diagnostics& diagnostics) {
  auto described = ordered_json::array();
  for (const PartRequest& request : requests) {
    if (!registries.methods.contains(request.name)) {
      diagnostics.error(request.origin, request.key, registries.methods.unknown(request.name));
      continue;
    }
    std::unique_ptr<Method> method = registries.methods.create(request.name);
    Schema options;
    method->options(options);
    options.apply(request.options, diagnostics, fmt::format("{}.{}", request.key, request.name));
    if (!method->accepts(recipe.targets))
      report_target_mismatch(recipe, request, "method", diagnostics);
    described.push_back({{request.name, options.values()}});
    recipe.methods.push_back({request.name, std::move(method)});
  }
  for (const std::string& broken : broken_rules(recipe.methods))
    diagnostics.error(recipe.config.methods.origin, "methods", broken);
  recipe.resolved["methods"] = described;
}

std::map<std::string, Origin, std::less<>> key_origins(const Schema& schema,
                                                       const std::string& path) {
  std::map<std::string, Origin, std::less<>> origins = {
      {"", {path.empty() ? kCommandLine : path, 0, 0}}};
  for (const std::string& key : schema.names())
    if (schema.given(key)) origins[key] = schema.origin(key);
  return origins;
}

/// Adds the parts of the recipe's plug-ins. @return their files and checksums, which a resumed run
/// compares.
ordered_json load_plugins(const ConfigNode& file, const std::vector<Override>& overrides,
                          Registries& registries, Diagnostics& diagnostics) {
  ordered_json loaded = {{"files", ordered_json::array()}, {"xxh3", ordered_json::array()}};
  for (const PluginFile& plugin : open_plugins(file, overrides, diagnostics)) {
    add_plugin(plugin, registries);
    // Recorded as absolute paths, because the run's params.json is in another folder.
    loaded["files"].push_back(std::filesystem::absolute(plugin.path()).lexically_normal().string());
    loaded["xxh3"].push_back(plugin.digest());
  }
  return loaded;
}

/// Returns the datasets that the recipe must name.
/// @param path the recipe's file, which is the location of errors about a dataset that it does not
/// name.
std::vector<NamedDataset> named_datasets(const Recipe& recipe, const Schema& schema,
                                         const std::string& path) {
  const TrainConfig& config = recipe.config;
  const Origin nowhere{path.empty() ? kCommandLine : path, 0, 0};
  std::vector<NamedDataset> datasets;
  const auto add = [&](const char* key, std::vector<std::string> files) {
    if (files.empty()) files.emplace_back();
    for (const std::string& file : files)
      datasets.push_back({key, file, schema.given(key) ? schema.origin(key) : nowhere});
  };
  if (recipe.outside.empty()) add("data.train_dataset", config.data.train_dataset);
  add("data.val_dataset", config.data.val_dataset);
  return datasets;
}

/// Records a list of one file as a string, the form that earlier versions used, which had no lists.
void shorten_lists_of_one(ordered_json& values) {
  for (const char* key : {"data.train_dataset", "data.val_dataset"}) {
    ordered_json& files = values.at(key);
    if (files.empty()) files = "";
    if (files.is_array() && files.size() == 1) files = ordered_json(files[0]);
  }
}

/// Sets the number of channels of all images to model.in_channels. @param origin of
/// model.in_channels
void fit_channels(Recipe& recipe, const Origin& origin, Diagnostics& diagnostics) {
  const std::int64_t channels = recipe.config.model.in_channels;
  if (channels != 1 && channels != 3) {
    diagnostics.error(origin, "model.in_channels",
                      fmt::format("expected 1 or 3, got {}", channels));
    return;
  }
  for (data::Pipeline* const pipeline : {&recipe.train_pipeline, &recipe.val_pipeline}) {
    data::set_channels(*pipeline, static_cast<int>(channels), recipe.config.data.inputs,
                       diagnostics);
  }
}

/// Returns the given keys that only runs with several ranks read. Leaves out dist.world_size, which
/// a dry run compares with the number of ranks, and dist.address and dist.port, which do no harm.
std::vector<UnreadKey> rank_keys(const Schema& schema) {
  std::vector<UnreadKey> found;
  for (const char* key : {"dist.zero", "dist.sync_bn", "dist.grad_compression",
                          "dist.variable_update", "dist.timeout_s", "dist.join_timeout_s"}) {
    if (schema.given(key))
      found.push_back({key, schema.origin(key), "it has no effect in a run of one rank"});
  }
  return found;
}

/// For a command that does not train: reports an error for each key on its command line that
/// selects training samples. A value that selects all samples is accepted.
void refuse_selection(const TrainConfig& config, const Schema& schema, Diagnostics& diagnostics) {
  const auto check = [&](const char* key, const auto& value, const auto& all, const char* wanted) {
    if (value == all || schema.origin(key).source != kCommandLine) return;
    diagnostics.error(
        schema.origin(key), key,
        fmt::format("expected {} in a command that does not train, because the key selects "
                    "training samples, got '{}'. `precast select` writes some samples of a dataset "
                    "to a file, for --data.val_dataset=FILE",
                    wanted, value));
  };
  const TrainConfig defaults;
  check("data.subset", config.data.subset, defaults.data.subset, "an empty value");
  check("data.filter", config.data.filter, defaults.data.filter, "an empty value");
  check("data.repeats", config.data.repeats, defaults.data.repeats, "1");
}

/// Warns of training keys on the command line of a command that does not train. In a file, they are
/// part of the recipe.
void warn_of_training_keys(const std::vector<Override>& overrides, Diagnostics& diagnostics) {
  const std::set<std::string_view> read = {
      "dist.nproc",         "dist.world_size",        "dist.address",
      "dist.port",          "dist.timeout_s",         "dist.join_timeout_s",
      "training.device",    "training.precision",     "training.distributed",
      "training.eval_only", "training.loss",          "training.label_smoothing",
      "training.seed",      "training.channels_last", "training.use_blurpool"};
  for (const Override& override : overrides) {
    const auto& [key, value] = override;
    if (value.origin.source != kCommandLine || read.contains(key)) continue;
    for (const std::string_view section :
         {"dist.", "lr.", "optimizer.", "checkpoint.", "training.", "pipeline.train", "resolution.",
          "logging.", "order.", "data.order", "data.shuffle_window_mb", "data.batches_per_epoch"}) {
      if (key.starts_with(section))
        diagnostics.warning(value.origin, key, "it has no effect in a command that does not train");
    }
  }
}

}  // namespace

const Origin& Recipe::origin_of(std::string_view key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? origins.at("") : found->second;
}

void Recipe::refuse(std::string_view key, const std::string& message) const {
  Diagnostics diagnostics;
  diagnostics.error(origin_of(key), key, message);
  diagnostics.throw_if_errors();
  throw ConfigError(message);
}

Recipe load_recipe(const std::string& path, const std::vector<Override>& overrides,
                   Registries& registries, RecipeUse use, UnreadKeys unread) {
  Recipe recipe;
  Diagnostics diagnostics;
  const RecipeFile read = read_recipe_file(path, diagnostics);
  const ConfigNode& file = read.sections;
  const ordered_json plugins = load_plugins(file, overrides, registries, diagnostics);
  const TrainConfig defaults;
  const ChosenParts chosen{
      .optimizer =
          peek_value(file, overrides, kOptimizerSection.selector, defaults.training.optimizer),
      .schedule =
          peek_value(file, overrides, kScheduleSection.selector, defaults.lr.lr_schedule_type),
      .loss = peek_value(file, overrides, kLossSection.selector, defaults.training.loss),
      .order = peek_value(file, overrides, kOrderSection.selector, defaults.data.order)};
  PartSections parts;
  Schema schema = make_train_schema(recipe.config, parts, chosen, registries);
  if (unread == UnreadKeys::warning) schema.warn_of_unread();
  schema.apply(given_keys(read, schema), diagnostics);
  for (const Override& override : overrides) schema.apply(override, diagnostics);
  check_train_config(recipe.config, schema, use == RecipeUse::train, diagnostics);
  recipe.unread_by_one_rank = rank_keys(schema);
  if (use == RecipeUse::evaluate || recipe.config.training.eval_only) {
    refuse_selection(recipe.config, schema, diagnostics);
    warn_of_training_keys(overrides, diagnostics);
  } else {
    check_batch_sizes(recipe.config, read.recorded, schema, diagnostics);
    check_checkpoints(recipe.config, read.recorded, schema, diagnostics);
  }
  recipe.optimizer = parts.spec(schema, kOptimizerSection, chosen.optimizer);
  recipe.schedule = parts.spec(schema, kScheduleSection, chosen.schedule);
  recipe.order = parts.spec(schema, kOrderSection, chosen.order);
  recipe.loss = parts.spec(schema, kLossSection, chosen.loss);
  recipe.train_pipeline =
      data::parse_pipeline(recipe.config.train_pipeline, "pipeline.train", registries.pipeline,
                           data::standard_train_pipeline(), diagnostics);
  recipe.val_pipeline =
      data::parse_pipeline(recipe.config.val_pipeline, "pipeline.val", registries.pipeline,
                           data::standard_val_pipeline(), diagnostics);
  fit_channels(recipe, schema.origin("model.in_channels"), diagnostics);
  if (use == RecipeUse::train) {
    recipe.ring =
        find_ring_dataset(recipe.config.data.train_dataset, schema.origin("data.train_dataset"));
    // The run records the files instead of the ring, so that it can be repeated without the ring.
    if (!recipe.ring.files.empty()) recipe.config.data.train_dataset = recipe.ring.files;
    find_outside_producer(recipe, schema, diagnostics);
    check_waits(recipe.config, !recipe.outside.empty(), schema, diagnostics);
  }
  recipe.datasets = named_datasets(recipe, schema, path);
  recipe.resolved = schema.values();
  shorten_lists_of_one(recipe.resolved);
  recipe.resolved["plugins"] = plugins.at("files");
  if (!plugins.at("xxh3").empty()) recipe.resolved["plugins.xxh3"] = plugins.at("xxh3");
  recipe.origins = key_origins(schema, path);
  recipe.targets = targets_of(recipe.loss, registries.losses);
  make_methods(recipe, all_methods(recipe.config, schema, diagnostics), registries, diagnostics);
  make_metrics(recipe, registries, diagnostics);
  recipe.best = choose_best_metric(recipe, schema, diagnostics);
  report_ignored_tta(recipe, schema, diagnostics);
  if (diagnostics.errors().empty()) probe_parts(recipe, registries, use, path, diagnostics);
  diagnostics.throw_if_errors();
  for (const std::string& warning : diagnostics.warnings()) log_warning("{}", warning);
  recipe.unread_keys = diagnostics.unread_keys();
  recipe.ignored_keys = diagnostics.ignored_keys();
  return recipe;
}

std::vector<RecipeKey> recipe_help(const Registries& registries) {
  TrainConfig config;
  PartSections parts;
  std::vector<RecipeKey> keys;
  const auto add_all = [&](const Schema& schema, const std::string& with) {
    for (const Schema::KeyHelp& key : schema.keys()) {
      // Keys without help are options of parts that were not chosen; they are listed with their
      // parts.
      if (!key.help.empty())
        keys.push_back({key.name, key.help, key.type, key.value, key.required, with});
    }
  };
  add_all(make_train_schema(config, parts, {}, registries), "");
  const auto add = [&](const auto& registry, const PartSection& section) {
    for (const auto& entry : registry.entries()) {
      const auto part = entry.factory();
      Schema options, named;
      part->options(options);
      for (const std::string& option : options.names()) {
        const auto renamed = section.renamed.find(option);
        named.add_renamed(
            renamed == section.renamed.end() ? section.prefix + option : renamed->second, options,
            option);
      }
      add_all(named, fmt::format("{}: {}", section.selector, entry.name));
    }
  };
  add(registries.orders, kOrderSection);
  add(registries.losses, kLossSection);
  add(registries.optimizers, kOptimizerSection);
  add(registries.schedules, kScheduleSection);
  return keys;
}

}  // namespace precast::tools
