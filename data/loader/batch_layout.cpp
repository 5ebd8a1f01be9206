#include "data/loader/batch_layout.h"

#include <utility>

#include "data/beton/format.h"

namespace precast::data {
namespace {

constexpr std::size_t kFieldAlignment = 64;

std::vector<std::int64_t> shape_of(const Output& output, std::int64_t image_size_px) {
  if (output.kind == OutputKind::array) return output.shape;
  if (output.kind != OutputKind::image && output.kind != OutputKind::mask) return {};
  const auto side = static_cast<int>(image_size_px);
  const bool mask = output.kind == OutputKind::mask;
  const PixelShape out = output.image.output({side, side, output.channels}, mask);
  if (out.channels == 1) return {out.height, out.width};
  if (output.channels_first) return {out.channels, out.height, out.width};
  return {out.height, out.width, out.channels};
}

}  // namespace

BatchLayout::BatchLayout(const std::vector<Output>& outputs, std::int64_t batch_size,
                         std::int64_t image_size_px)
    : outputs_(outputs), image_size_px_(image_size_px) {
  for (const Output& output : outputs) {
    OutputField field{.shape = shape_of(output, image_size_px),
                      .offset = bytes_,
                      .sample_bytes = element_size(output.type)};
    for (const std::int64_t side : field.shape)
      field.sample_bytes *= static_cast<std::size_t>(side);
    bytes_ += round_up(field.sample_bytes * static_cast<std::size_t>(batch_size), kFieldAlignment);
    fields_.push_back(std::move(field));
  }
}

std::vector<HostTensor> BatchLayout::describe(std::byte* memory, std::int64_t count) const {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const OutputField& field = fields_[i];
    HostTensor tensor{.name = outputs_[i].name,
                      .type = outputs_[i].type,
                      .shape = {count},
                      .data = memory + field.offset};
    tensor.shape.insert(tensor.shape.end(), field.shape.begin(), field.shape.end());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace precast::data
