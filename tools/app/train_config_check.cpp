#include "tools/app/train_config_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "data/http/http_client.h"
#include "data/order/order.h"
#include "data/order/pages.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

void check_dataset_keys(const TrainConfig& config, const ReportKey& report_error) {
  const auto& data = config.data;
  for (const auto& [key, files] : {std::pair("data.train_dataset", &data.train_dataset),
                                   std::pair("data.val_dataset", &data.val_dataset)}) {
    if (std::ranges::find(*files, "") != files->end())
      report_error(key, "expected the paths of .beton files, got an empty path");
  }
}

void check_order_keys(const TrainConfig& config, const Schema& schema, Diagnostics& diagnostics) {
  const auto& data = config.data;
  const auto report_error = [&](const std::string& key, const std::string& message) {
    diagnostics.error(schema.origin(key), key, message);
  };
  const data::OrderOptions order{
      .subset = data.subset, .filter = data.filter, .repeats = data.repeats};
  for (const data::OrderProblem& problem : data::find_problems(order))
    report_error("data." + problem.option, problem.message);
  if (!data::is_window(data.shuffle_window_mb)) {
    report_error("data.shuffle_window_mb",
                 fmt::format("expected auto, ffcv or a number of MiB above 0, got '{}'",
                             data.shuffle_window_mb));
  }
  if (data.order == "weighted" && schema.given("data.weights") == schema.given("data.weight_field"))
    report_error(
        "data.weights",
        fmt::format("expected either data.weights or data.weight_field, because data.order is "
                    "weighted, got {}",
                    schema.given("data.weights") ? "both" : "neither"));
}

void check_unread_keys(const TrainConfig& config, const Schema& schema, Diagnostics& diagnostics) {
  const auto unread = [&](std::string_view key, std::string_view selector, const auto& chosen,
                          std::string_view reader) {
    if (schema.given(key)) {
      schema.report_unread(key,
                           fmt::format("it has no effect with {0}: {1}, only with {0}: {2}",
                                       selector, chosen, reader),
                           diagnostics);
    }
  };
  const auto& data = config.data;
  if (data.order != "quasi_random")
    unread("data.shuffle_window_mb", "data.order", data.order, "quasi_random");
  if (data.in_memory != 0) {
    const std::string chosen =
        data.in_memory == kImagesOnGpu ? "gpu" : std::to_string(data.in_memory);
    unread("data.cache_mb", "data.in_memory", chosen, "0");
    unread("data.direct_io", "data.in_memory", chosen, "0");
  }
  if (data.in_memory == kImagesOnGpu && data.verify) {
    diagnostics.error(
        schema.origin("data.verify"), "data.verify",
        "expected false with data.in_memory: gpu, got true. Run `precast verify` on the datasets "
        "before training");
  }
}

}  // namespace

void check_for_ranks(const TrainConfig& config, std::int64_t ranks, const ReportKey& report_error) {
  const auto& training = config.training;
  if (training.global_batch_size % ranks != 0) {
    report_error("training.global_batch_size",
                 fmt::format("expected a multiple of the number of ranks ({}), got {}", ranks,
                             training.global_batch_size));
    return;
  }
  const std::int64_t batch = rank_batch_size(config, ranks);
  if (batch % training.micro_batches != 0) {
    report_error("training.micro_batches",
                 fmt::format("expected a divisor of the batch of one rank ({}), got {}", batch,
                             training.micro_batches));
  }
  if (training.cuda_graphs == "on" && ranks > 1)
    report_error("training.cuda_graphs", "expected auto, off or step with several ranks, got on");
}

void check_batch_sizes(const TrainConfig& config, bool recorded, const Schema& schema,
                       Diagnostics& diagnostics) {
  constexpr const char* kBatch = "training.batch_size";
  const std::int64_t global = config.training.global_batch_size;
  if (global == 0 || !schema.given(kBatch)) return;
  const std::string& batch_source = schema.origin(kBatch).source;
  const std::string& global_source = schema.origin("training.global_batch_size").source;
  // It is not a mistake to override a recipe's batch size with a global batch size. A params.json
  // does not tell which of the two keys came from the command line.
  const bool overridden = global_source == kCommandLine && batch_source != kCommandLine;
  if (overridden || (recorded && batch_source != kCommandLine)) return;
  diagnostics.ignored(schema.origin(kBatch), kBatch,
                      fmt::format("it has no effect with training.global_batch_size: {}, only with "
                                  "training.global_batch_size: 0",
                                  global));
}

void check_checkpoints(const TrainConfig& config, bool recorded, const Schema& schema,
                       Diagnostics& diagnostics) {
  const auto& checkpoint = config.checkpoint;
  if (checkpoint.every_steps > 0 || checkpoint.every_epochs > 0) return;
  // An earlier version, which accepted the key, may have recorded the run.
  const auto is_checked = [&](const char* key) {
    return schema.given(key) && (!recorded || schema.origin(key).source == kCommandLine);
  };
  constexpr const char* kNone = "checkpoint.every_epochs: 0 and checkpoint.every_steps: 0";
  constexpr const char* kRestore = "training.on_nonfinite";
  if (config.training.on_nonfinite == "restore" && is_checked(kRestore)) {
    diagnostics.error(
        schema.origin(kRestore), kRestore,
        fmt::format("expected stop or skip with {}, which save no checkpoints, got restore",
                    kNone));
  }
  constexpr const char* kBest = "checkpoint.keep_best";
  if (checkpoint.keep_best == 0 || !is_checked(kBest)) return;
  const Origin& origin = schema.origin(kBest);
  const std::string reason =
      fmt::format("it has no effect with {}, which save no checkpoints", kNone);
  // The default of every_epochs is above 0, so the key was given.
  if (origin.source == schema.origin("checkpoint.every_epochs").source)
    schema.report_unread(kBest, reason, diagnostics);
  else if (origin.source == kCommandLine)  // otherwise, the command line overrides the recipe
    diagnostics.ignored(origin, kBest, reason);
}

void check_waits(const TrainConfig& config, bool has_producer, const Schema& schema,
                 Diagnostics& diagnostics) {
  if (config.training.eval_only) return;  // there is no watchdog
  const std::int64_t stall_s = config.training.stall_timeout_s;
  const auto check = [&](const char* wait, double wait_s) {
    if (wait_s < static_cast<double>(stall_s)) return;
    // Reports the key that was given, because a default has no location in the file.
    constexpr const char* kStall = "training.stall_timeout_s";
    if (schema.given(wait) || !schema.given(kStall))
      diagnostics.error(schema.origin(wait), wait,
                        fmt::format("expected less than {} ({}), got {}", kStall, stall_s, wait_s));
    else
      diagnostics.error(schema.origin(kStall), kStall,
                        fmt::format("expected more than {} ({}), got {}", wait, wait_s, stall_s));
  };
  const auto& data = config.data;
  if (has_producer) check("data.producer_timeout_s", data.producer_timeout_s);
  // With 2, the files are fetched before the watchdog starts.
  constexpr std::int64_t kPreloaded = 2;
  if (data.in_memory != kPreloaded && (std::ranges::any_of(data.train_dataset, data::is_url) ||
                                       std::ranges::any_of(data.val_dataset, data::is_url)))
    check("data.http_retry_s", data.http_retry_s);
}

void check_train_config(const TrainConfig& config, const Schema& schema, bool trains,
                        Diagnostics& diagnostics) {
  const auto report_error = [&](std::string_view key, const std::string& message) {
    diagnostics.error(schema.origin(key), key, message);
  };
  check_dataset_keys(config, report_error);
  check_order_keys(config, schema, diagnostics);
  check_unread_keys(config, schema, diagnostics);
  if (config.model.pretrained) {
    report_error(
        "model.pretrained",
        "expected false, got true. precast contains no weights; set model.weights to a file");
  }
  if (config.resolution.min_res > config.resolution.max_res) {
    report_error("resolution.min_res",
                 fmt::format("expected at most resolution.max_res ({}), got {}",
                             config.resolution.max_res, config.resolution.min_res));
  }
  if (config.resolution.start_ramp > config.resolution.end_ramp) {
    report_error("resolution.start_ramp",
                 fmt::format("expected at most resolution.end_ramp ({}), got {}",
                             config.resolution.end_ramp, config.resolution.start_ramp));
  }
  if (trains) check_for_ranks(config, requested_ranks(config), report_error);
  if (config.dist.zero && config.dist.variable_update == "parameter_server") {
    report_error("dist.zero",
                 "expected false with dist.variable_update: parameter_server, got true");
  }
  if (config.dist.grad_compression != "none" && config.dist.variable_update == "parameter_server") {
    report_error("dist.grad_compression",
                 fmt::format("expected none with dist.variable_update: parameter_server, got {}",
                             config.dist.grad_compression));
  }
  if (config.training.device == "cpu" && config.training.precision == "fp16") {
    report_error("training.precision", "expected fp32 or bf16 on a CPU, got fp16");
  }
}

}  // namespace precast::tools
