#include "data/batch_source.h"

#include <ATen/ops/from_blob.h>
#include <fmt/core.h>

#include <utility>

#include "data/batch_views.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

at::ScalarType scalar_type(ElementType type) {
  constexpr at::ScalarType kTypes[] = {at::kByte,   at::kFloat, at::kLong,
                                       at::kDouble, at::kHalf,  at::kBFloat16};
  return kTypes[static_cast<int>(type)];
}

/// The place of a field among those that the loader puts out (it leaves out bytes, json and
/// arrays).
std::size_t output_place(const BetonReader& reader, std::size_t field) {
  std::size_t place = 0;
  for (std::size_t f = 0; f < field; ++f) {
    const FieldType type = reader.fields()[f].type;
    if (type == FieldType::image || type == FieldType::integer || type == FieldType::floating)
      ++place;
  }
  return place;
}

std::size_t find_field(const BetonReader& reader, const std::string& name, FieldType type,
                       std::string_view what) {
  const std::size_t field = name.empty() ? reader.first_field(type) : reader.field(name);
  if (field >= reader.fields().size() || reader.fields()[field].type != type) {
    throw DataError(fmt::format("{}: expected {} field{}, got none", reader.path().string(), what,
                                name.empty() ? "" : fmt::format(" '{}'", name)));
  }
  return output_place(reader, field);
}

class CpuBatchSource final : public BatchSource {
 public:
  CpuBatchSource(const BetonReader& reader, const ImagePipeline& pipeline, LoaderOptions options,
                 const FieldPlaces& places)
      : loader_(reader, pipeline, std::move(options)), places_(places) {}

  void begin_epoch(const EpochRequest& request) override { loader_.begin_epoch(request); }

  std::optional<Batch> next() override {
    const std::optional<HostBatch> host = loader_.next();
    if (!host) return std::nullopt;
    Batch batch = view_host_batch(*host, places_);
    for (NamedTensor& field : batch.fields) {
      // [N, H, W, 3] in memory is [N, 3, H, W] in channels_last: no copy.
      if (field.tensor.dim() == 4) field.tensor = field.tensor.permute({0, 3, 1, 2});
    }
    return batch;
  }

  [[nodiscard]] std::int64_t size(int world) const override {
    return loader_.batches(world, /*rank=*/0);
  }
  [[nodiscard]] std::int64_t samples() const override { return loader_.samples(); }
  [[nodiscard]] double seconds_waited() const override { return loader_.seconds_waited(); }

 private:
  Loader loader_;
  FieldPlaces places_;
};

}  // namespace

FieldPlaces find_fields(const BetonReader& reader, const FieldChoice& choice) {
  return {.image = find_field(reader, choice.image, FieldType::image, "an RGB image"),
          .label = find_field(reader, choice.label, FieldType::integer, "an integer")};
}

Batch view_host_batch(const HostBatch& host, const FieldPlaces& places) {
  Batch batch{.fields = {},
              .sample_ids = host.sample_ids,
              .image_index = places.image,
              .label_index = places.label};
  for (const HostTensor& field : host.fields) {
    batch.fields.push_back(
        {field.name, at::from_blob(
                         field.data, field.shape, [memory = host.memory](void*) {},
                         at::TensorOptions(scalar_type(field.type)))});
  }
  return batch;
}

std::unique_ptr<BatchSource> make_batch_source(const BetonReader& reader,
                                               const ImagePipeline& pipeline,
                                               const LoaderOptions& options,
                                               const FieldChoice& fields, at::Device device,
                                               at::ScalarType image_dtype) {
  const FieldPlaces places = find_fields(reader, fields);
  LoaderOptions loader_options = options;
  if (device.is_cpu()) {
    loader_options.normalize = true;
    return std::make_unique<CpuBatchSource>(reader, pipeline, loader_options, places);
  }
  loader_options.normalize = false;
  return make_cuda_batch_source(reader, pipeline, loader_options, places, device, image_dtype);
}

}  // namespace precast::data
