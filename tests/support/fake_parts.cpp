#include "tests/support/fake_parts.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace precast::test {

LinearModel::LinearModel(std::int64_t classes)
    : weight(at::zeros({classes, 3}).requires_grad_()), steps_seen(at::zeros({}, at::kLong)) {}

at::Tensor LinearModel::classify(const at::Tensor& images) {
  return at::matmul(images.mean({2, 3}), weight.t());
}

std::vector<NamedTensor> LinearModel::parameters() const {
  return {{"weight", weight}};
}

std::vector<NamedTensor> LinearModel::state() const {
  return {{"weight", weight}, {"num_batches_tracked", steps_seen}};
}

void LinearModel::to(at::Device /*device*/, bool /*channels_last*/) {}

at::Tensor MeanCrossEntropy::mean(const at::Tensor& logits, const at::Tensor& labels) const {
  const bool is_16_bit = at::isReducedFloatingType(logits.scalar_type());
  return at::cross_entropy_loss(is_16_bit ? logits.to(at::kFloat) : logits, labels);
}

ColourSource::ColourSource(std::vector<std::int64_t> labels, std::int64_t batch_size)
    : labels_(std::move(labels)), batch_size_(batch_size) {}

void ColourSource::begin_epoch(const EpochRequest& request) {
  requests.push_back(request);
  const auto world = static_cast<std::size_t>(request.world);
  const auto rank = static_cast<std::size_t>(request.rank);
  rank_samples_.clear();
  for (std::size_t index = rank; index < labels_.size(); index += world)
    rank_samples_.push_back(index);
  position_ = static_cast<std::size_t>(request.first_batch * batch_size_);
}

std::optional<Batch> ColourSource::next() {
  if (position_ >= rank_samples_.size()) return std::nullopt;
  const std::size_t end =
      std::min(rank_samples_.size(), position_ + static_cast<std::size_t>(batch_size_));
  Batch batch;
  std::vector<at::Tensor> images;
  std::vector<std::int64_t> labels;
  for (; position_ < end; ++position_) {
    const std::int64_t label = labels_[rank_samples_[position_]];
    at::Tensor image = at::zeros({3, 4, 4});
    image[label % 3].fill_(1);
    images.push_back(image);
    labels.push_back(label);
    batch.sample_ids.push_back(rank_samples_[position_]);
  }
  batch.fields = {{"image", at::stack(images)}, {"label", at::tensor(labels, at::kLong)}};
  return batch;
}

std::int64_t ColourSource::size(int world) const {
  const std::int64_t longest = (samples() + world - 1) / world;
  return (longest + batch_size_ - 1) / batch_size_;
}

void RecordingMethod::on_epoch_begin(std::int64_t epoch, Model& /*model*/) {
  calls_.push_back("begin " + std::to_string(epoch));
}

void RecordingMethod::on_batch(Batch& /*batch*/, std::int64_t global_step) {
  calls_.push_back("batch " + std::to_string(global_step));
}

void RecordingMethod::on_gradients(Model& model) {
  calls_.push_back(model.parameters()[0].tensor.grad().defined() ? "gradients" : "no gradients");
}

void RecordingMethod::on_step_end(Model& /*model*/, std::int64_t global_step) {
  calls_.push_back("step " + std::to_string(global_step));
}

std::unique_ptr<Method::EvalGuard> RecordingMethod::eval_scope(Model& /*model*/) {
  class Guard final : public EvalGuard {
   public:
    explicit Guard(std::vector<std::string>& calls) : calls_(calls) { calls_.push_back("eval"); }
    ~Guard() override { calls_.push_back("/eval"); }

   private:
    std::vector<std::string>& calls_;
  };
  return std::make_unique<Guard>(calls_);
}

void MemorySink::write(const nlohmann::ordered_json& record) {
  records.push_back(record.dump());
}

}  // namespace precast::test
