#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/batch_source.h"
#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/metric_sink.h"
#include "framework/api/model.h"
#include "framework/api/schedule.h"

namespace precast::test {

/// A linear classifier of the mean colour: logits = mean over pixels (images) * weight^T, [N, 3] x
/// [3, classes].
class LinearModel final : public ImageModel {
 public:
  explicit LinearModel(std::int64_t classes);
  at::Tensor classify(const at::Tensor& images) override;
  [[nodiscard]] std::vector<NamedTensor> parameters() const override;
  [[nodiscard]] std::vector<NamedTensor> state() const override;
  void train(bool training) override { training_ = training; }
  void to(at::Device device, bool channels_last) override;

  [[nodiscard]] bool training() const { return training_; }
  at::Tensor weight;
  at::Tensor steps_seen;

 private:
  bool training_ = false;
};

/// The mean cross-entropy of class labels. Converts 16-bit logits to float32.
class MeanCrossEntropy final : public TargetLoss {
 public:
  [[nodiscard]] at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override;
};

/// The rate of epoch e is (e + 1) * `lr`.
class RisingLr final : public Schedule {
 public:
  explicit RisingLr(double lr) : lr_(lr) {}
  [[nodiscard]] double lr(std::int64_t epoch) const override {
    return lr_ * static_cast<double>(epoch + 1);
  }

 private:
  double lr_;
};

/// Images of a single colour: all images of class c have the colour of channel c % 3, so a linear
/// model can learn up to three classes.
class ColourSource final : public BatchSource {
 public:
  ColourSource(std::vector<std::int64_t> labels, std::int64_t batch_size);
  void begin_epoch(const EpochRequest& request) override;
  std::optional<Batch> next() override;
  [[nodiscard]] std::int64_t size(int world) const override;
  [[nodiscard]] std::int64_t samples() const override {
    return static_cast<std::int64_t>(labels_.size());
  }
  [[nodiscard]] double seconds_waited() const override { return 0; }

  std::vector<EpochRequest> requests;

 private:
  std::vector<std::int64_t> labels_;
  std::int64_t batch_size_;
  /// Indices of this rank's samples in labels_.
  std::vector<std::size_t> rank_samples_;
  std::size_t position_ = 0;
};

/// Records the calls of the hooks below as texts: "begin 0", "batch 3", "gradients" (or "no
/// gradients"), "step 3", "eval" and "/eval".
class RecordingMethod final : public Method {
 public:
  explicit RecordingMethod(std::vector<std::string>& calls) : calls_(calls) {}
  void on_epoch_begin(std::int64_t epoch, Model& model) override;
  void on_batch(Batch& batch, std::int64_t global_step) override;
  void on_gradients(Model& model) override;
  void on_step_end(Model& model, std::int64_t global_step) override;
  std::unique_ptr<EvalGuard> eval_scope(Model& model) override;

 private:
  std::vector<std::string>& calls_;
};

/// A sink that stores its records.
class MemorySink final : public MetricSink {
 public:
  void write(const nlohmann::ordered_json& record) override;
  void flush() override { flushed = records.size(); }
  [[nodiscard]] std::int64_t position() const override {
    return static_cast<std::int64_t>(records.size());
  }
  void rewind(std::int64_t position) override {
    records.resize(static_cast<std::size_t>(position));
  }
  [[nodiscard]] double seconds() const override { return clock; }
  void advance(double seconds) override { clock = std::max(clock, seconds); }
  /// One JSON text per record.
  std::vector<std::string> records;
  /// How many records there were at the last flush().
  std::size_t flushed = 0;
  /// Changes only in advance().
  double clock = 0;
};

}  // namespace precast::test
