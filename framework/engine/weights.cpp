#include "framework/engine/weights.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/engine/state_archive.h"

namespace precast::engine {
namespace {

/// The number of names in a message. With the weights of a different network, every name may
/// differ; the first few show which network it is.
constexpr std::size_t kMaxNames = 4;

std::vector<std::int64_t> sizes(const at::Tensor& tensor) {
  return tensor.sizes().vec();
}

/// Whether the record's shape differs from the model's only in dimension 0, the number of classes.
bool is_other_head(const TensorRecord& record, const std::vector<std::int64_t>& expected_shape,
                   const NumClasses& classes) {
  const auto& shape = record.shape;
  if (expected_shape.empty() || shape.size() != expected_shape.size() ||
      shape[0] == expected_shape[0])
    return false;
  return expected_shape[0] == classes.model && (classes.file == 0 || shape[0] == classes.file) &&
         std::equal(shape.begin() + 1, shape.end(), expected_shape.begin() + 1);
}

/// Maps tensors of a file to tensors of the model.
class Assignment {
 public:
  /// @param file must outlive apply().
  Assignment(Model& model, const WeightsFile& file, const std::optional<NumClasses>& other_head)
      : state_(model.state()),
        records_(torchvision_names(file.records(), file.path().string(), spec_of(file)).records) {
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
      if (other_head && is_other_head(*record, sizes(target.tensor), *other_head)) {
        sources_.push_back(nullptr);
        skipped_.insert(target.name);
        continue;
      }
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
    std::string message =
        fmt::format("{}: expected weights that fit the model, got differences:", path.string());
    const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
      if (!names.empty())
        message +=
            fmt::format("\n  {} ({}): {}", what, names.size(), first_names(names, kMaxNames));
    };
    list("missing", missing_);
    list("unexpected", unexpected_);
    list("different shape", misshaped_);
    throw CheckpointError(message);
  }

  [[nodiscard]] const std::set<std::string>& skipped() const { return skipped_; }

  void apply() const {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const TensorRecord* record = sources_[i];
      if (skipped_.contains(state_[i].name)) continue;
      if (record == nullptr) {
        state_[i].tensor.zero_();
        continue;
      }
      state_[i].tensor.copy_(view_record(*record));
    }
  }

 private:
  std::vector<NamedTensor> state_;
  std::vector<TensorRecord> records_;
  /// The record for each entry of state_; null if the file does not have one, or if it is not used.
  std::vector<const TensorRecord*> sources_;
  std::vector<std::string> missing_, unexpected_, misshaped_;
  /// The model's tensors that keep their initial values, because the file has a different number of
  /// classes.
  std::set<std::string> skipped_;
};

}  // namespace

void save_model_weights(const Model& model, const std::filesystem::path& stem,
                        const std::optional<WeightsSpec>& spec) {
  failpoint("run_folder.before_weights");
  const StateCopy copy(model.state());
  const auto blurred = spec ? spec->blurred : std::map<std::string, std::int64_t>();
  const FfcvNames names = ffcv_names(copy.records(), blurred, stem.string());
  const auto metadata = spec ? weights_metadata(*spec) : std::map<std::string, std::string>();
  save_weights(stem.string() + ".safetensors", names.records, metadata);
  save_weights(stem.string() + ".pt", names.records, metadata);
}

void load_model_weights(Model& model, const std::filesystem::path& path,
                        const std::optional<NumClasses>& other_head) {
  const bool own_prefix = std::ranges::any_of(
      model.state(), [](const NamedTensor& entry) { return has_wrapper_prefix(entry.name); });
  const WeightsFile file =
      load_weights(path, own_prefix ? WrapperPrefixes::keep : WrapperPrefixes::strip);
  const Assignment assignment(model, file, other_head);
  assignment.check(path);
  if (!assignment.skipped().empty()) {
    log_warning("{}: weights for a different number of classes; {} keep their initial values",
                path.string(), fmt::join(assignment.skipped(), ", "));
  }
  assignment.apply();
}

}  // namespace precast::engine
