#include "data/torch/value_range.h"

#include <ATen/TensorIndexing.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "data/loader/sample_bytes.h"
#include "data/torch/batch_views.h"

namespace precast::data {

std::optional<ArrayNumber> find_outside(const BetonReader& reader, const Output& output, double low,
                                        double high, std::uint64_t samples) {
  if (!is<ArrayOutput>(output)) return std::nullopt;
  const at::ScalarType type = scalar_type(output.type);
  const std::uint64_t stride = std::max<std::uint64_t>(reader.size() / samples, 1);
  DirectWindow direct;
  for (std::uint64_t sample = 0; sample < reader.size(); sample += stride) {
    const auto window = direct.read(reader, range_of(reader, {output.field}, sample));
    const std::span<const std::byte> bytes = reader.blob(sample, output.field, window);
    const at::Tensor stored =
        at::empty({static_cast<std::int64_t>(bytes.size() / c10::elementSize(type))}, type);
    std::memcpy(stored.mutable_data_ptr(), bytes.data(), stored.nbytes());
    const at::Tensor numbers = stored.to(at::kDouble);
    const at::Tensor outside =
        numbers.index({numbers.ge(low).logical_and_(numbers.le(high)).logical_not_()});
    if (outside.numel() > 0) return ArrayNumber{sample, outside[0].item<double>()};
  }
  return std::nullopt;
}

}  // namespace precast::data
