#include "data/sources/npy_array.h"

#include <utility>

#include "framework/core/archive/npy.h"

namespace precast::data {

ArrayInput npy_array(std::span<const std::byte> file, const std::string& place) {
  NpyArray array = parse_npy(file, place);
  ArrayInput input{{std::string(dtype_info(array.dtype).numpy), {}}, std::move(array.bytes)};
  for (const std::int64_t size : array.shape)
    input.format.shape.push_back(static_cast<std::uint64_t>(size));
  if (input.format.shape.empty()) input.format.shape.push_back(1);
  return input;
}

}  // namespace precast::data
