#include "framework/engine/state_archive.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"

namespace precast::engine {
namespace {

constexpr std::pair<DType, at::ScalarType> kTypes[] = {
    {DType::f64, at::kDouble},    {DType::f32, at::kFloat}, {DType::f16, at::kHalf},
    {DType::bf16, at::kBFloat16}, {DType::i64, at::kLong},  {DType::i32, at::kInt},
    {DType::i16, at::kShort},     {DType::i8, at::kChar},   {DType::u8, at::kByte},
    {DType::boolean, at::kBool}};

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  for (const auto& [precast_type, torch_type] : kTypes) {
    if (precast_type == dtype) return torch_type;
  }
  throw std::logic_error("every DType has a scalar type");
}

DType dtype_of(const at::Tensor& tensor) {
  for (const auto& [precast_type, torch_type] : kTypes) {
    if (torch_type == tensor.scalar_type()) return precast_type;
  }
  throw CheckpointError(
      fmt::format("weights: expected an element type that weights files can store, got {}",
                  c10::toString(tensor.scalar_type())));
}

void check_storable(const std::vector<NamedTensor>& state, const std::string& part) {
  std::set<std::string_view> names;
  for (const NamedTensor& entry : state) {
    if (!names.insert(entry.name).second) throw ConfigError(repeated_name_text(part, entry.name));
    try {
      static_cast<void>(dtype_of(entry.tensor));
    } catch (const CheckpointError& error) {
      throw ConfigError(fmt::format("{}: tensor '{}': {}", part, entry.name, error.what()));
    }
  }
}

at::Tensor view_record(const TensorRecord& record) {
  // from_blob() takes a pointer to mutable memory.
  auto* bytes = const_cast<std::byte*>(record.bytes.data());
  return at::from_blob(bytes, record.shape, scalar_type(record.dtype));
}

StateCopy::StateCopy(const std::vector<NamedTensor>& tensors) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& entry : tensors) {
    at::Tensor copy = at::empty(entry.tensor.sizes(), entry.tensor.options().device(at::kCPU));
    copy.copy_(entry.tensor.detach());
    tensors_.push_back({entry.name, std::move(copy)});
  }
}

std::vector<TensorRecord> StateCopy::records() const {
  std::vector<TensorRecord> records;
  for (const auto& [name, tensor] : tensors_) {
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    records.push_back({name, dtype_of(tensor), tensor.sizes().vec(), {bytes, tensor.nbytes()}});
  }
  return records;
}

std::uint64_t StateCopy::bytes() const {
  std::uint64_t sum = 0;
  for (const NamedTensor& entry : tensors_) sum += entry.tensor.nbytes();
  return sum;
}

bool all_finite(const std::vector<NamedTensor>& tensors, at::Device device) {
  at::Tensor finite = at::full({}, true, at::device(device).dtype(at::kBool));
  for (const NamedTensor& entry : tensors) {
    if (entry.tensor.is_floating_point())
      finite.logical_and_(at::isfinite(entry.tensor.detach()).all());
  }
  return finite.item<bool>();
}

std::vector<NamedTensor> gather_tensors(const std::vector<NamedTensor>& mine, Communicator& ranks,
                                        at::Device device) {
  auto listed = nlohmann::json::array();
  for (const NamedTensor& entry : mine) {
    listed.push_back(
        {entry.name, static_cast<int>(dtype_of(entry.tensor)), entry.tensor.sizes().vec()});
  }
  const std::vector<std::string> lists = ranks.all_gather(listed.dump());
  std::vector<NamedTensor> all = mine;
  for (int owner = 1; owner < ranks.world(); ++owner) {
    std::size_t index = 0;
    for (const auto& entry : nlohmann::json::parse(lists[static_cast<std::size_t>(owner)])) {
      // The tensors are sent one after the other, so that ranks other than rank 0 need memory for
      // only one of them.
      const auto type = scalar_type(static_cast<DType>(entry[1].get<int>()));
      at::Tensor tensor = ranks.rank() == owner
                              ? mine[index].tensor.detach().contiguous()
                              : at::empty(entry[2].get<std::vector<std::int64_t>>(),
                                          at::device(device).dtype(type));
      ranks.broadcast({tensor}, owner);
      const auto name = entry[0].get<std::string>();
      // Tensors that every rank has, such as the count of steps, are equal on all ranks and saved
      // only once.
      if (ranks.rank() == 0 && std::ranges::find(all, name, &NamedTensor::name) == all.end())
        all.push_back({name, tensor});
      ++index;
    }
  }
  return all;
}

void restore_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& targets,
                     bool partial) {
  restore_tensors(load_weights(path, WrapperPrefixes::keep).records(), path, targets, partial);
}

void restore_tensors(const std::vector<TensorRecord>& saved, const std::filesystem::path& path,
                     const std::vector<NamedTensor>& targets, bool partial) {
  std::vector<std::string> wrong;
  std::map<std::string_view, const TensorRecord*> records;
  for (const TensorRecord& record : saved) records.emplace(record.name, &record);
  std::size_t unexpected = records.size();
  for (const NamedTensor& target : targets) {
    const auto found = records.find(target.name);
    if (found == records.end()) {
      wrong.push_back(fmt::format("{} is missing", target.name));
      continue;
    }
    --unexpected;
    const TensorRecord& record = *found->second;
    if (record.shape != target.tensor.sizes().vec() || record.dtype != dtype_of(target.tensor)) {
      wrong.push_back(fmt::format("{}: expected {} {}, got {} {}", target.name,
                                  dtype_info(dtype_of(target.tensor)).name,
                                  shape_text(target.tensor.sizes().vec()),
                                  dtype_info(record.dtype).name, shape_text(record.shape)));
    }
  }
  if (!partial && unexpected > 0)
    wrong.push_back(fmt::format("{} tensor{} that this run does not have", unexpected,
                                unexpected == 1 ? "" : "s"));
  if (!wrong.empty()) {
    throw CheckpointError(fmt::format("{}: expected the tensors of this run, got differences: {}",
                                      path.string(), fmt::join(wrong, "; ")));
  }
  const at::NoGradGuard no_grad;
  for (const NamedTensor& target : targets)
    target.tensor.detach().copy_(view_record(*records.at(target.name)));
}

}  // namespace precast::engine
