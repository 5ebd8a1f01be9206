#include "tools/app/run_report.h"

#include <c10/core/Device.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/system.h"
#include "models/detail/fused_layer_counts.h"
#include "tools/app/class_figures.h"
#include "tools/app/data_description.h"
#include "tools/app/frozen_parameters.h"
#include "tools/app/kernel_choice.h"
#include "tools/app/output_choice.h"
#include "tools/app/run_results.h"
#include "tools/app/session.h"
#include "tools/app/task.h"
#include "tools/cli/json_output.h"
#include "tools/cli/version.h"
#include "tools/doctor/torch/torch_versions.h"
#include "tools/report/data_verdict.h"
#include "tools/report/report_page.h"
#include "tools/report/run_record.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The metric that determines the best checkpoint, as it is recorded.
ordered_json best_json(const BestMetric& best) {
  return {{"name", best.name}, {"higher_is_better", best.higher_is_better}};
}

DataFacts data_facts(const ReportedRun& training, const engine::TrainSummary& summary) {
  std::vector<ReplacedSample> replaced = summary.replaced.train;
  replaced.insert(replaced.end(), summary.replaced.val.begin(), summary.replaced.val.end());
  return {.train_seconds = summary.train_seconds,
          .wait_seconds = summary.wait_seconds,
          .times = summary.loader_times,
          .process_images = summary.process_images / training.world,
          .major_faults = major_faults() - training.faults_before,
          .workers = training.run.loader_threads(),
          .default_workers =
              data::loader_threads(usable_cores(), static_cast<int>(training.run.local_world),
                                   training.run.device.is_cuda()),
          .has_jpegs = training.train != nullptr && has_jpegs(*training.train),
          .in_memory = training.run.config().data.in_memory,
          .replaced = std::move(replaced)};
}

}  // namespace

std::int64_t major_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_majflt;
}

void log_run_start(const ReportedRun& training) {
  const std::string kind =
      reads_images(training.val, training.run, training.parts.plan()) ? "image" : "sample";
  log_info("=> {} on {}{}: {} and {}, {}", training.parts.plan().model.arch,
           training.world > 1 ? fmt::format("{} x ", training.world) : "",
           c10::DeviceTypeName(training.run.device.type(), true),
           format_count(static_cast<std::uint64_t>(training.train_samples), "training " + kind),
           format_count(training.val.size(), "validation " + kind),
           outputs_text(training.run.recipe.targets, training.parts.plan().model.num_classes));
  log_info("=> {} of {}, global batch {}, run folder {}",
           format_count(static_cast<std::uint64_t>(training.parts.plan().epochs), "epoch"),
           format_count(static_cast<std::uint64_t>(training.parts.plan().steps_per_epoch), "step"),
           training.parts.plan().global_batch_size, training.folder.path().string());
  if (training.train != nullptr) {
    log_info("=> memory for data: {}", plan_train_memory(*training.train, training.train_data,
                                                         training.run, training.parts.plan())
                                           .text());
  } else {
    log_info("=> training batches from {}", training.run.recipe.outside);
  }
  if (const auto frozen = frozen_parameters(training.parts.model()); !frozen.empty())
    log_info("=> frozen: {}", frozen_text(frozen));
  for (const std::string& warning : part_kernels_warnings(training.run)) log_warning("{}", warning);
  if (!training.parts.plan().model.fused_kernels) return;
  const ordered_json kernels = describe_kernels(training.run, training.parts.plan(),
                                                models::fused_layer_counts(training.parts.model()));
  log_info("=> kernels: {}", kernels_text(kernels));
  if (const std::string text = kernels_warning(kernels); !text.empty()) log_warning("{}", text);
}

void write_run_json(const ReportedRun& training) {
  std::int64_t parameters = 0;
  for (const NamedTensor& parameter : training.parts.model().parameters())
    parameters += parameter.tensor.numel();
  const Recipe& recipe = training.run.recipe;
  const OutputChoice outputs = training.train != nullptr
                                   ? choose_outputs(*training.train, recipe, recipe.train_pipeline)
                                   : choose_outputs(training.val, recipe, recipe.val_pipeline);
  std::error_code unknown;  // Another process may have removed the folder.
  const ordered_json facts = {
      {"precast", kVersion},
      {"torch", torch_version()},
      {"device", device_name(training.run.device)},
      {"kernels",
       kernels_used(describe_kernels(training.run, training.parts.plan(),
                                     models::fused_layer_counts(training.parts.model())))},
      {"processor", processor_name()},
      {"cores", usable_cores()},
      {"loader_threads", training.run.loader_threads()},
      {"memory_bytes", memory_limit_bytes()},
      {"world_size", training.world},
      {"train_images", training.train_samples},
      {"val_images", training.val.size()},
      {"train_dataset_bytes", training.train != nullptr ? training.train->file_bytes() : 0},
      {"val_dataset_bytes", training.val.file_bytes()},
      {"classes", training.parts.plan().model.num_classes},
      {"inputs", outputs.inputs},
      {"targets", outputs.targets},
      {"best_metric", best_json(training.run.recipe.best)},
      {"parameters", parameters},
      {"global_batch_size", training.parts.plan().global_batch_size},
      {"epochs", training.parts.plan().epochs},
      {"steps_per_epoch", training.parts.plan().steps_per_epoch},
      {"started_in", std::filesystem::current_path(unknown).string()}};
  training.folder.write_json("run.json", facts);
}

void write_report_page(const engine::RunFolder& folder) {
  try {
    write_run_report(folder.path());
  } catch (const std::exception& error) {
    log_warning("report.html could not be written: {}", error.what());
  }
}

void report_results(const ReportedRun& training, const engine::TrainSummary& summary,
                    std::int64_t steps, bool json) {
  const engine::EvalResult& eval = *summary.final_eval;
  const DataFacts data = data_facts(training, summary);
  ordered_json figures = {{"run_folder", training.folder.path().string()}};
  figures.update(eval_figures(eval));
  figures.update(ordered_json{{"val_images", eval.samples},
                              {"train_loss", summary.train_loss},
                              {"train_minutes", summary.train_seconds / 60},
                              {"eval_minutes", summary.eval_seconds / 60},
                              {"wait_minutes", summary.wait_seconds / 60},
                              {"images_per_second", train_rate(summary)},
                              {"world_size", training.world},
                              {"epochs", training.parts.plan().epochs},
                              {"steps", steps},
                              {"skipped_steps", summary.skipped_steps},
                              {"replaced_samples", data.replaced.size()}});
  figures["best_metric"] = best_json(training.run.recipe.best);
  figures["classes"] = class_figures(eval, training.val, training.run.recipe);
  if (summary.skipped_steps > 0) {
    log_warning("training.on_nonfinite: {} (of {})", skipped_steps_text(summary.skipped_steps),
                format_count(static_cast<std::uint64_t>(steps), "step"));
  }
  training.folder.write_json(engine::kSummaryFile, figures);
  write_report_page(training.folder);
  if (json) {
    print_json(figures);
    return;
  }
  const bool images = reads_images(training.val, training.run, training.parts.plan());
  print_results({.summary = summary,
                 .images = images,
                 .flip_tta = images && mirrors_images(training.run.recipe),
                 .data = describe_data(data),
                 .folder = training.folder.path()});
}

}  // namespace precast::tools
