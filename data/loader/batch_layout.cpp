#include "data/loader/batch_layout.h"

#include <utility>

#include "data/beton/reader.h"

namespace precast::data {
namespace {

constexpr std::size_t kFieldAlignment = 64;

}  // namespace

BatchLayout::BatchLayout(const BetonReader& reader, std::int64_t batch_size,
                         std::int64_t image_size_px, ElementType image_type) {
  const auto& stored = reader.fields();
  for (std::size_t f = 0; f < stored.size(); ++f) {
    OutputField field{.field = f, .name = stored[f].name, .kind = stored[f].type};
    if (field.kind == FieldType::image) {
      field.type = image_type;
      field.shape = {image_size_px, image_size_px, 3};
    } else if (field.kind == FieldType::floating) {
      field.type = ElementType::f64;
    } else if (field.kind != FieldType::integer) {
      continue;
    }
    field.offset = bytes_;
    field.sample_bytes = element_size(field.type);
    for (const std::int64_t side : field.shape)
      field.sample_bytes *= static_cast<std::size_t>(side);
    bytes_ += round_up(field.sample_bytes * static_cast<std::size_t>(batch_size), kFieldAlignment);
    fields_.push_back(std::move(field));
  }
}

std::vector<HostTensor> BatchLayout::describe(std::byte* memory, std::int64_t count) const {
  std::vector<HostTensor> tensors;
  for (const OutputField& field : fields_) {
    HostTensor tensor{
        .name = field.name, .type = field.type, .shape = {count}, .data = memory + field.offset};
    tensor.shape.insert(tensor.shape.end(), field.shape.begin(), field.shape.end());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace precast::data
