#include "framework/engine/rank_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "framework/engine/generator_snapshot.h"
#include "framework/engine/state_archive.h"

namespace precast::engine {
namespace {

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor copy = tensor.cpu().contiguous();
  return {static_cast<const char*>(copy.const_data_ptr()), copy.nbytes()};
}

}  // namespace

std::vector<NamedTensor> gather_rank_tensors(const TrainState& state, Communicator& ranks,
                                             at::Device device) {
  std::vector<NamedTensor> all;
  const auto gather = [&](const std::string& name, const at::Tensor& tensor) {
    const std::vector<std::string> texts = ranks.all_gather(bytes_of(tensor));
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      at::Tensor bytes = at::zeros({static_cast<std::int64_t>(texts[rank].size())}, at::kByte);
      std::memcpy(bytes.mutable_data_ptr(), texts[rank].data(), texts[rank].size());
      all.push_back({fmt::format("{}.{}", rank, name), bytes.view(tensor.scalar_type())});
    }
  };
  gather("cpu_generator", generator_state(at::kCPU));
  if (!device.is_cpu()) gather("device_generator", generator_state(device));
  gather("loss_sum", state.loss_sum);
  gather("loss_count", state.loss_count);
  return all;
}

void restore_rank(const std::filesystem::path& folder, int world, double steps, Communicator& ranks,
                  at::Device device, TrainState& state) {
  const WeightsFile file = load_weights(folder / kRanksFile, WrapperPrefixes::keep);
  const auto tensor = [&](int rank, const char* name) {
    const std::string key = fmt::format("{}.{}", rank, name);
    const TensorRecord* record = file.find(key);
    if (record == nullptr) {
      throw CheckpointError(
          fmt::format("{}: expected a tensor {}, got none", file.path().string(), key));
    }
    return view_record(*record);
  };
  const int rank = ranks.rank();
  const bool same_device =
      device.is_cpu() || file.find(fmt::format("{}.device_generator", rank)) != nullptr;
  const double weight = steps * ranks.world() / world;
  if (world == ranks.world() && same_device) {
    set_generator_state(at::kCPU, tensor(rank, "cpu_generator").clone());
    if (!device.is_cpu()) set_generator_state(device, tensor(rank, "device_generator").clone());
    state.loss_sum.copy_(tensor(rank, "loss_sum").squeeze());
    state.loss_count.copy_(tensor(rank, "loss_count").squeeze());
  } else {
    state.loss_sum.zero_();
    state.loss_count.zero_();
    for (int other = 0; rank == 0 && other < world; ++other) {
      state.loss_sum.add_(tensor(other, "loss_sum").squeeze().to(device));
      state.loss_count.add_(tensor(other, "loss_count").squeeze().to(device));
    }
  }
  state.loss_sum.mul_(weight);
  state.loss_count.mul_(weight);
}

}  // namespace precast::engine
