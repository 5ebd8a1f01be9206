#include "framework/engine/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string>

#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"

namespace precast::engine {
namespace {

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::f64, at::kDouble},    {DType::f32, at::kFloat}, {DType::f16, at::kHalf},
    {DType::bf16, at::kBFloat16}, {DType::i64, at::kLong},  {DType::i32, at::kInt},
    {DType::i16, at::kShort},     {DType::i8, at::kChar},   {DType::u8, at::kByte},
    {DType::boolean, at::kBool}};

at::ScalarType scalar_type(DType dtype) {
  for (const auto& [ours, torchs] : kTypes) {
    if (ours == dtype) return torchs;
  }
  throw std::logic_error("every DType has a scalar type");
}

DType dtype_of(const at::Tensor& tensor) {
  for (const auto& [ours, torchs] : kTypes) {
    if (torchs == tensor.scalar_type()) return ours;
  }
  throw CheckpointError(fmt::format("weights: expected a plain element type, got {}",
                                    c10::toString(tensor.scalar_type())));
}

std::vector<std::int64_t> sizes(const at::Tensor& tensor) {
  return tensor.sizes().vec();
}

/// What of a file goes where in the model.
class Assignment {
 public:
  /// @param file is read until the end of apply().
  Assignment(Model& model, const WeightsFile& file)
      : state_(model.state()),
        records_(torchvision_names(file.records(), file.path().string()).records) {
    std::map<std::string, const TensorRecord*> records;
    for (const TensorRecord& record : records_) records.emplace(record.name, &record);
    for (const NamedTensor& target : state_) {
      const auto found = records.find(target.name);
      if (found == records.end()) {
        sources_.push_back(nullptr);
        if (!target.name.ends_with("num_batches_tracked")) missing_.push_back(target.name);
        continue;
      }
      const TensorRecord* record = found->second;
      records.erase(found);
      sources_.push_back(record);
      if (record->shape != sizes(target.tensor)) {
        misshaped_.push_back(fmt::format("{}: expected {}, got {}", target.name,
                                         shape_text(sizes(target.tensor)),
                                         shape_text(record->shape)));
      }
    }
    for (const auto& [name, record] : records) unexpected_.push_back(name);
  }

  void check(const std::filesystem::path& path) const {
    if (missing_.empty() && unexpected_.empty() && misshaped_.empty()) return;
    std::string message = fmt::format("{}: the weights do not fit the model.", path.string());
    const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
      if (!names.empty())
        message += fmt::format("\n  {} ({}): {}", what, names.size(), fmt::join(names, ", "));
    };
    list("missing", missing_);
    list("unexpected", unexpected_);
    list("other shape", misshaped_);
    throw CheckpointError(message);
  }

  void apply() const {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const TensorRecord* record = sources_[i];
      if (record == nullptr) {
        state_[i].tensor.zero_();
        continue;
      }
      // from_blob wants mutable memory; copy_ only reads it.
      auto* bytes = const_cast<std::byte*>(record->bytes.data());
      state_[i].tensor.copy_(at::from_blob(bytes, record->shape, scalar_type(record->dtype)));
    }
  }

 private:
  std::vector<NamedTensor> state_;
  std::vector<TensorRecord> records_;
  /// One an entry of state_; null where the file has none.
  std::vector<const TensorRecord*> sources_;
  std::vector<std::string> missing_, unexpected_, misshaped_;
};

}  // namespace

void save_model_weights(const Model& model, const std::filesystem::path& stem) {
  failpoint("run_folder.before_weights");
  std::vector<at::Tensor> kept;  // what the records view
  std::vector<TensorRecord> records;
  for (const NamedTensor& entry : model.state()) {
    const at::Tensor tensor = entry.tensor.detach().cpu().contiguous();
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    records.push_back({entry.name, dtype_of(tensor), sizes(tensor), {bytes, tensor.nbytes()}});
    kept.push_back(tensor);
  }
  save_weights(stem.string() + ".safetensors", records);
  save_weights(stem.string() + ".pt", records);
}

void load_model_weights(Model& model, const std::filesystem::path& path) {
  const WeightsFile file = load_weights(path);
  const Assignment assignment(model, file);
  assignment.check(path);
  assignment.apply();
}

}  // namespace precast::engine
