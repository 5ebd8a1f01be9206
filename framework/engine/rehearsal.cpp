#include "framework/engine/rehearsal.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/core/progress.h"
#include "framework/engine/kept_generators.h"
#include "framework/engine/out_of_memory.h"

namespace precast::engine {
namespace {

/// Copies of the model's state and of the generators from which its layers draw. The copies are on
/// the CPU, so that they use no memory of the device.
class KeptState {
 public:
  KeptState(const Model& model, at::Device device) : generators_({at::kCPU, device}) {
    for (const NamedTensor& entry : model.state()) {
      at::Tensor now = entry.tensor.detach();
      before_.emplace_back(now, now.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    }
  }

  void put_back() const {
    const at::NoGradGuard no_grad;
    for (const auto& [now, before] : before_) now.copy_(before);
    generators_.put_back();
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;
  KeptGenerators generators_;
};

/// A source of one full batch and, if the rank's share is not a multiple of the batch size, the
/// partial last batch.
class MadeUpSource final : public BatchSource {
 public:
  MadeUpSource(std::int64_t share, const RehearsalOptions& options) : options_(options) {
    if (share >= options.val_batch_size) sizes_.push_back(options.val_batch_size);
    if (share % options.val_batch_size != 0) sizes_.push_back(share % options.val_batch_size);
  }
  void begin_epoch(const EpochRequest& request) override {
    size_px_ = request.image_size_px;
    place_ = 0;
  }
  std::optional<Batch> next() override {
    if (place_ == sizes_.size()) return std::nullopt;
    return options_.val_batch(sizes_[place_++], size_px_);
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
  std::size_t place_ = 0;
  std::int64_t size_px_ = 0;
};

std::string plain_text(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch != nullptr ? torch->what_without_backtrace() : error.what();
}

/// Runs `work`; turns an out-of-memory error into `message` followed by libtorch's text.
void in_memory(const std::function<void()>& work, const std::function<std::string()>& message) {
  try {
    work();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw Error(fmt::format("{}\n  {}", message(), plain_text(error)), ExitCode::out_of_memory);
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
    if (options.kept_image_bytes == 0) return;
    in_memory(
        [&] {
          images_ = at::empty({static_cast<std::int64_t>(options.kept_image_bytes)},
                              at::device(options.device).dtype(at::kByte));
        },
        [&] {
          return fmt::format(
              "out of memory: expected {} of stored images to fit on {}, got too little free "
              "memory. Use data.in_memory: 1 or 2, or write the file with a smaller "
              "--image.max_resolution",
              format_bytes(static_cast<double>(options.kept_image_bytes)), options.device.str());
        });
  }

  void train(std::int64_t size_px) {
    const std::int64_t samples = plan_.global_batch_size / parts_.ranks.world();
    in_memory(
        [&] {
          parts_.model.train(true);
          std::vector<Batch> others;
          for (std::int64_t i = 0; i < others_of(plan_.steps_per_epoch); ++i)
            others.push_back(options_.train_batch(samples, size_px));
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
              samples, size_px, place(), epoch - plan_.image_size_px.begin() + 1,
              plan_.micro_batches, hint_of_images());
        });
  }

  void evaluate() {
    const std::int64_t world = parts_.ranks.world();
    const std::int64_t share = (options_.val_samples - parts_.ranks.rank() + world - 1) / world;
    MadeUpSource source(share, options_);
    const std::unique_ptr<Communicator> alone = make_single_rank();
    in_memory(
        [&] {
          std::vector<Batch> others;
          for (std::int64_t i = 0; i < others_of(share / options_.val_batch_size); ++i) {
            others.push_back(
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
              std::min(share, options_.val_batch_size), evaluator_.image_size_px(), place(),
              options_.evaluate_each_epoch ? 1 : plan_.epochs, hint_of_images());
        });
  }

 private:
  /// The number of full batches that a source with `batches` of them holds on the device in
  /// addition to the one in use.
  [[nodiscard]] std::int64_t others_of(std::int64_t batches) const {
    return std::max<std::int64_t>(std::min(options_.batches_ahead, batches - 1), 0);
  }
  /// Where the work must fit, for messages.
  [[nodiscard]] std::string place() const {
    if (!images_.defined()) return options_.device.str();
    return fmt::format("{} with {} of stored images", options_.device.str(),
                       format_bytes(static_cast<double>(options_.kept_image_bytes)));
  }
  [[nodiscard]] std::string hint_of_images() const {
    return images_.defined() ? ", or use data.in_memory: 1" : "";
  }

  const TrainPlan& plan_;
  const StepParts& parts_;
  const Evaluator& evaluator_;
  const RehearsalOptions& options_;
  TrainStep step_;
  /// Takes the memory of the stored images, which are copied later.
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
  const KeptState kept(parts.model, options.device);
  Rehearsal rehearsal(plan, parts, evaluator, options);
  const std::vector<std::int64_t> sizes = sizes_to_rehearse(plan);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rehearsal.train(sizes[i]);
    if (i == 0) rehearsal.evaluate();
  }
  if (sizes.empty()) rehearsal.evaluate();
  kept.put_back();
  parts.model.train(false);
}

}  // namespace precast::engine
