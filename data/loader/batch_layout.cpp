#include "data/loader/batch_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "data/beton/format.h"
#include "data/loader/image_planner.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr std::size_t kFieldAlignment = 64;
/// More memory than any machine has, and far below the limit at which sizes overflow.
constexpr std::size_t kMaxBatchBytes = std::size_t{1} << 56;

using Shape = std::vector<std::int64_t>;

/// The shape of one sample of an output.
class ShapeOf {
 public:
  explicit ShapeOf(std::int64_t image_size_px) : side_(static_cast<int>(image_size_px)) {}

  Shape operator()(const ImageOutput& image) const {
    const PixelShape out = image.pipeline.output({side_, side_, 3});
    if (image.max_stored_side_px)
      return {static_cast<std::int64_t>(image_plan_bytes(image, side_))};
    if (image.channels_first) return {out.channels, out.height, out.width};
    return {out.height, out.width, out.channels};
  }
  Shape operator()(const MaskOutput& mask) const {
    const PixelShape out = mask.pipeline.output({side_, side_, mask.channels}, /*mask=*/true);
    if (out.channels == 1) return {out.height, out.width};
    return {out.height, out.width, out.channels};
  }
  Shape operator()(const ArrayOutput& array) const { return array.shape; }
  Shape operator()(const BytesOutput& bytes) const { return {bytes.capacity}; }
  Shape operator()(const ShapedOutput& shaped) const { return shaped.shape; }
  Shape operator()(const ExtentsOutput& extents) const {
    return {static_cast<std::int64_t>(extents.dimensions)};
  }
  /// All other outputs are numbers.
  Shape operator()(const auto& /*number*/) const { return {}; }

 private:
  int side_;
};

}  // namespace

BatchLayout::BatchLayout(const std::vector<Output>& outputs, std::int64_t batch_size,
                         std::int64_t image_size_px)
    : outputs_(outputs), image_size_px_(image_size_px) {
  const auto count = static_cast<std::size_t>(batch_size);
  for (const Output& output : outputs) {
    OutputField field{.shape = std::visit(ShapeOf(image_size_px), output.kind),
                      .offset = bytes_,
                      .sample_bytes = element_size(output.type)};
    std::size_t all = 0;
    bool fits = true;
    for (const std::int64_t side : field.shape) {
      fits = fits && !__builtin_mul_overflow(field.sample_bytes, static_cast<std::size_t>(side),
                                             &field.sample_bytes);
    }
    fits = fits && !__builtin_mul_overflow(field.sample_bytes, count, &all);
    if (!fits || all > kMaxBatchBytes - bytes_) {
      throw ConfigError(
          fmt::format("{}: expected batches of at most {} bytes, got {} samples of [{}] "
                      "values of {} bytes. Lower pad_to or the batch size",
                      output.name, kMaxBatchBytes, batch_size, fmt::join(field.shape, ", "),
                      element_size(output.type)));
    }
    bytes_ += round_up(all, kFieldAlignment);
    fields_.push_back(std::move(field));
  }
}

/// @return the number of elements of the largest value in the batch.
std::int64_t BatchLayout::pack(std::size_t output, std::byte* memory, std::int64_t count) const {
  const OutputField& field = fields_[output];
  const OutputField& extents = fields_[output + 1];
  const auto elements = [&](std::int64_t row) {
    std::uint64_t product = 1;
    const auto at = static_cast<std::size_t>(row) * extents.sample_bytes;
    for (std::size_t i = 0; i < extents.sample_bytes; i += sizeof(std::uint64_t))
      product *= load<std::uint64_t>(memory + extents.offset + at + i);
    return product;
  };
  std::uint64_t largest = 0;
  for (std::int64_t row = 0; row < count; ++row) largest = std::max(largest, elements(row));
  const std::size_t element = element_size(outputs_[output].type);
  const std::size_t stride = static_cast<std::size_t>(largest) * element;
  for (std::int64_t row = 0; row < count; ++row) {
    const auto number = static_cast<std::size_t>(row);
    const std::size_t bytes = static_cast<std::size_t>(elements(row)) * element;
    std::byte* const to = memory + field.offset + number * stride;
    std::memmove(to, memory + field.offset + number * field.sample_bytes, bytes);
    std::memset(to + bytes, 0, stride - bytes);
  }
  return static_cast<std::int64_t>(largest);
}

std::vector<HostTensor> BatchLayout::finish(std::byte* memory, std::int64_t count) const {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const OutputField& field = fields_[i];
    HostTensor tensor{.name = outputs_[i].name,
                      .type = outputs_[i].type,
                      .shape = {count},
                      .data = memory + field.offset};
    tensor.shape.insert(tensor.shape.end(), field.shape.begin(), field.shape.end());
    if (is_packed(outputs_[i])) tensor.shape = {count, pack(i, memory, count)};
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace precast::data
