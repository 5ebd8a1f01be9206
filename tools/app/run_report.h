#pragma once

#include <cstdint>

#include "data/beton/reader.h"
#include "framework/engine/run_folder.h"
#include "framework/engine/trainer.h"
#include "tools/app/assembly.h"
#include "tools/app/resolved_run.h"
#include "tools/app/session.h"

namespace precast::tools {

/// The facts for the messages and files of rank 0 about a training run. Borrows everything.
struct ReportedRun {
  const ResolvedRun& run;
  const Assembly& parts;
  /// Null if another program makes the batches.
  const data::BetonReader* train;
  const data::BetonReader& val;
  const TrainData& train_data;
  /// The number of training samples in an epoch.
  std::int64_t train_samples;
  int world;
  const engine::RunFolder& folder;
  /// The value of major_faults() before training. It is subtracted, because loading the program
  /// caused these faults.
  std::int64_t faults_before;
};

/// The number of page faults of this process so far that had to read from disk.
[[nodiscard]] std::int64_t major_faults();

/// Logs what is trained, on what data, and on which device.
void log_run_start(const ReportedRun& training);
/// Writes run.json, which contains facts about the run other than its configuration. @throws
/// IoError
void write_run_json(const ReportedRun& training);
/// Writes report.html. An error is only a warning.
void write_report_page(const engine::RunFolder& folder);
/// Writes summary.json and report.html, and prints the results. Warns if steps were skipped
/// (training.on_nonfinite: skip).
/// @param summary has a final_eval.
/// @param steps the number of steps of the run.
/// @param json whether to print summary.json in place of text.
/// @throws IoError
void report_results(const ReportedRun& training, const engine::TrainSummary& summary,
                    std::int64_t steps, bool json);

}  // namespace precast::tools
