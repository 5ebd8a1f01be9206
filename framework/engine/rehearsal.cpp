#include "framework/engine/rehearsal.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "framework/api/single_rank.h"
#include "framework/api/torch_message.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/engine/generator_snapshot.h"
#include "framework/engine/out_of_memory.h"

namespace precast::engine {
namespace {

/// Copies of the model's state and of the generators from which its layers draw. The copies are on
/// the CPU, so that they use no memory of the device.
class ModelSnapshot {
 public:
  ModelSnapshot(const Model& model, at::Device device) : generators_({at::kCPU, device}) {
    for (const NamedTensor& entry : model.state()) {
      at::Tensor now = entry.tensor.detach();
      before_.emplace_back(now, now.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    }
  }

  void restore() const {
    const at::NoGradGuard no_grad;
    for (const auto& [now, before] : before_) now.copy_(before);
    generators_.restore();
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;
  GeneratorSnapshot generators_;
};

/// A source of one full batch and, if the rank's share is not a multiple of the batch size, the
/// partial last batch.
class SyntheticSource final : public BatchSource {
 public:
  SyntheticSource(std::int64_t rank_samples, const RehearsalOptions& options) : options_(options) {
    if (rank_samples >= options.val_batch_size) sizes_.push_back(options.val_batch_size);
    if (rank_samples % options.val_batch_size != 0)
      sizes_.push_back(rank_samples % options.val_batch_size);
  }
  void begin_epoch(const EpochRequest& request) override {
    size_px_ = request.image_size_px;
    next_index_ = 0;
  }
  std::optional<Batch> next() override {
    if (next_index_ == sizes_.size()) return std::nullopt;
    return options_.val_batch(sizes_[next_index_++], size_px_);
  }
  [[nodiscard]] std::int64_t size(int /*world*/) const override {
    return static_cast<std::int64_t>(sizes_.size());
  }
  [[nodiscard]] std::int64_t samples() const override {
    std::int64_t sum = 0;
    for (const std::int64_t size : sizes_) sum += size;
    return sum;
  }
  [[nodiscard]] double seconds_waited() const override { return 0; }

 private:
  const RehearsalOptions& options_;
  std::vector<std::int64_t> sizes_;
  std::size_t next_index_ = 0;
  std::int64_t size_px_ = 0;
};

/// Runs `work`. If memory runs out, throws Error with `message`, followed by libtorch's message.
void explain_out_of_memory(const std::function<void()>& work,
                           const std::function<std::string()>& message) {
  try {
    work();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw Error(fmt::format("{}\n  {}", message(), message_of(error)), ExitCode::out_of_memory);
  }
}

class Rehearsal {
 public:
  Rehearsal(const TrainPlan& plan, const StepParts& parts, const Evaluator& evaluator,
            const RehearsalOptions& options)
      : plan_(plan),
        parts_(parts),
        evaluator_(evaluator),
        options_(options),
        step_(plan, parts, options.device, /*skip_nonfinite=*/false) {
    if (options.stored_image_bytes == 0) return;
    explain_out_of_memory(
        [&] {
          images_ = at::empty({static_cast<std::int64_t>(options.stored_image_bytes)},
                              at::device(options.device).dtype(at::kByte));
        },
        [&] {
          return fmt::format(
              "out of memory: expected {} of stored images to fit on {}, got too little free "
              "memory. Use data.in_memory: 1 or 2, or write the file with a smaller "
              "--image.max_resolution",
              format_bytes(static_cast<double>(options.stored_image_bytes)), options.device.str());
        });
  }

  void train(std::int64_t size_px) {
    const std::int64_t samples = plan_.global_batch_size / parts_.ranks.world();
    explain_out_of_memory(
        [&] {
          parts_.model.train(true);
          std::vector<Batch> extra_batches;
          for (std::int64_t i = 0; i < num_other_batches(plan_.steps_per_epoch); ++i)
            extra_batches.push_back(options_.train_batch(samples, size_px));
          Batch batch = options_.train_batch(samples, size_px);
          step_.rehearse(batch);
        },
        [&] {
          const auto epoch = std::ranges::find(plan_.image_size_px, size_px);
          return fmt::format(
              "out of memory: expected a training step on {} images of {} px to fit on {}, got "
              "too little free memory. Without this test, the run would have failed in epoch {}. "
              "Lower training.batch_size or "
              "resolution.max_res, or raise training.micro_batches (now {}){}",
              samples, size_px, device_text(), epoch - plan_.image_size_px.begin() + 1,
              plan_.micro_batches, hint_of_images());
        });
  }

  void evaluate() {
    const std::int64_t world = parts_.ranks.world();
    const std::int64_t rank_samples =
        (options_.val_samples - parts_.ranks.rank() + world - 1) / world;
    SyntheticSource source(rank_samples, options_);
    const std::unique_ptr<Communicator> alone = make_single_rank();
    explain_out_of_memory(
        [&] {
          std::vector<Batch> extra_batches;
          for (std::int64_t i = 0; i < num_other_batches(rank_samples / options_.val_batch_size);
               ++i) {
            extra_batches.push_back(
                options_.val_batch(options_.val_batch_size, evaluator_.image_size_px()));
          }
          static_cast<void>(evaluator_.evaluate(parts_.model, parts_.loss, source, *alone,
                                                [](std::int64_t) { return true; }));
        },
        [&] {
          return fmt::format(
              "out of memory: expected an evaluation of {} images of {} px at a time to fit on {}, "
              "got too little free memory. Without this test, the run would have failed after "
              "epoch {}. Lower validation.batch_size or validation.resolution{}",
              std::min(rank_samples, options_.val_batch_size), evaluator_.image_size_px(),
              device_text(), options_.evaluate_each_epoch ? 1 : plan_.epochs, hint_of_images());
        });
  }

 private:
  /// The number of full batches that a source stores on the device in addition to the one in use.
  /// @param batches the number of full batches in a pass.
  [[nodiscard]] std::int64_t num_other_batches(std::int64_t batches) const {
    return std::max<std::int64_t>(std::min(options_.batches_ahead, batches - 1), 0);
  }
  /// Describes the device and the stored images on it, for messages.
  [[nodiscard]] std::string device_text() const {
    if (!images_.defined()) return options_.device.str();
    return fmt::format("{} with {} of stored images", options_.device.str(),
                       format_bytes(static_cast<double>(options_.stored_image_bytes)));
  }
  [[nodiscard]] std::string hint_of_images() const {
    return images_.defined() ? ", or use data.in_memory: 1" : "";
  }

  const TrainPlan& plan_;
  const StepParts& parts_;
  const Evaluator& evaluator_;
  const RehearsalOptions& options_;
  TrainStep step_;
  /// Occupies as much memory as the stored images, which are copied to the device later.
  at::Tensor images_;
};

}  // namespace

std::vector<std::int64_t> sizes_to_rehearse(const TrainPlan& plan) {
  const std::set<std::int64_t, std::greater<>> sizes(plan.image_size_px.begin(),
                                                     plan.image_size_px.end());
  return {sizes.begin(), sizes.end()};
}

void rehearse(const TrainPlan& plan, const StepParts& parts, const Evaluator& evaluator,
              const RehearsalOptions& options) {
  const ModelSnapshot snapshot(parts.model, options.device);
  Rehearsal rehearsal(plan, parts, evaluator, options);
  const std::vector<std::int64_t> sizes = sizes_to_rehearse(plan);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rehearsal.train(sizes[i]);
    if (i == 0) rehearsal.evaluate();
  }
  if (sizes.empty()) rehearsal.evaluate();
  snapshot.restore();
  parts.model.train(false);
}

}  // namespace precast::engine
