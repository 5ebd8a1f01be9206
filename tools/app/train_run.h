#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "framework/api/batch_source.h"
#include "framework/engine/run_folder.h"
#include "framework/engine/trainer.h"
#include "framework/engine/watched_source.h"
#include "tools/app/assembly.h"
#include "tools/app/rank_session.h"
#include "tools/app/resolved_run.h"
#include "tools/app/run_report.h"
#include "tools/app/session.h"

namespace precast::tools {

/// The training run of one rank. Owns everything from the datasets to the run folder.
class TrainRun {
 public:
  /// Collective: all ranks construct one. @throws ConfigError if configuration, datasets,
  /// parameters or versions differ between the ranks.
  TrainRun(const ResolvedRun& run, const Registries& registries, RankSession& ranks);

  /// @return ExitCode::done, or ExitCode::preempted after a stop signal. If the signal came before
  /// this call, nothing is trained and no checkpoint is written. The caller must have a StopSignals
  /// object.
  int run(bool json);
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  /// The dataset that has the fields of training batches.
  [[nodiscard]] const data::BetonReader& dataset_with_batch_fields() const {
    return train_reader_ ? *train_reader_ : *val_reader_;
  }
  /// The number of training samples in an epoch.
  [[nodiscard]] std::int64_t train_samples() const;
  TrainPlan checked_plan(const Registries& registries) const;
  [[nodiscard]] std::unique_ptr<BatchSource> open_train_source() const;
  [[nodiscard]] std::unique_ptr<BatchSource> open_val_source() const;
  [[nodiscard]] nlohmann::ordered_json identity() const;
  engine::RunFolder open_run_folder();
  [[nodiscard]] engine::CheckpointOptions checkpoint_options() const;
  void check_identity(const nlohmann::ordered_json& saved);
  /// Keeps the recorded model.weights: a resumed run does not read the weights again.
  void keep_weights_key(const nlohmann::ordered_json& saved);
  engine::TrainSummary train(engine::Trainer& trainer, const engine::Evaluator& evaluator);
  /// Collective. Whether any rank has received a stop signal. If so, rank 0 has reported it, and
  /// this rank has left the group.
  bool stops_before_training();
  /// @param saved whether there is a checkpoint.
  void log_stopped(bool saved) const;
  /// Writes the results of a run that finished.
  void finish(engine::Trainer& trainer, const engine::TrainSummary& summary, bool json);
  /// The arguments for the functions of run_report.h.
  [[nodiscard]] ReportedRun reported() const;

  const ResolvedRun& run_;
  RankSession& ranks_;
  /// Null if another program makes the batches.
  std::unique_ptr<data::BetonReader> train_reader_;
  std::unique_ptr<data::BetonReader> val_reader_;
  TrainData train_data_;
  /// The recipe's keys, as recorded.
  nlohmann::ordered_json values_;
  Assembly parts_;
  engine::WatchedSource train_source_;
  engine::WatchedSource val_source_;
  nlohmann::ordered_json identity_;
  /// Initialised last, so that a run that cannot start leaves no folder.
  engine::RunFolder folder_;
  /// The value of major_faults() before training. It is subtracted, because loading the program
  /// caused these faults.
  std::int64_t faults_before_ = 0;
};

}  // namespace precast::tools
