#include "data/torch/batch_source.h"

#include <ATen/ops/from_blob.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "data/torch/batch_views.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

at::ScalarType scalar_type(ElementType type) {
  constexpr at::ScalarType kTypes[] = {
      at::kByte,  at::kFloat, at::kLong,   at::kDouble, at::kHalf,   at::kBFloat16, at::kChar,
      at::kShort, at::kInt,   at::kUInt16, at::kUInt32, at::kUInt64, at::kBool};
  return kTypes[static_cast<int>(type)];
}

/// The place of the output of that name, or, without a name, of the first whose kind stands first
/// among `kinds`. @throws DataError if there is none, or the one of that name is of another kind.
std::size_t find_output(const BetonReader& reader, const std::vector<Output>& outputs,
                        const std::string& name, std::span<const OutputKind> kinds,
                        std::string_view what) {
  for (const OutputKind kind : kinds) {
    const auto found = std::ranges::find_if(outputs, [&](const Output& output) {
      return output.kind == kind && (name.empty() || name == output.name);
    });
    if (found != outputs.end()) return static_cast<std::size_t>(found - outputs.begin());
  }
  throw DataError(fmt::format("{}: expected {} field{}, got none", reader.path().string(), what,
                              name.empty() ? "" : fmt::format(" '{}'", name)));
}

/// What a model reads, and what its output is held against. A file of texts or tables has no image.
constexpr std::array kInputs = {OutputKind::image, OutputKind::shaped, OutputKind::array,
                                OutputKind::bytes};
constexpr std::array kLabels = {OutputKind::integer, OutputKind::floating};

class CpuBatchSource final : public BatchSource {
 public:
  CpuBatchSource(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options,
                 BatchFields fields)
      : loader_(reader, pipeline, std::move(options)), fields_(std::move(fields)) {}

  void begin_epoch(const EpochRequest& request) override { loader_.begin_epoch(request); }

  std::optional<Batch> next() override {
    const std::optional<HostBatch> host = loader_.next();
    if (!host) return std::nullopt;
    Batch batch = view_host_batch(*host, fields_);
    for (std::size_t i = 0; i < batch.fields.size(); ++i) {
      const Output& output = fields_.outputs[i];
      if (output.kind != OutputKind::image || output.channels_first) continue;
      // [N, H, W, 3] in memory is [N, 3, H, W] in channels_last: no copy.
      batch.fields[i].tensor = batch.fields[i].tensor.permute({0, 3, 1, 2});
    }
    return batch;
  }

  [[nodiscard]] std::int64_t size(int world) const override {
    return loader_.batches(world, /*rank=*/0);
  }
  [[nodiscard]] std::int64_t samples() const override { return loader_.samples(); }
  [[nodiscard]] double seconds_waited() const override { return loader_.seconds_waited(); }
  [[nodiscard]] SourceTimes times() const override { return loader_.times(); }
  [[nodiscard]] std::vector<ReplacedSample> replaced() const override {
    return loader_.statistics().replaced;
  }

 private:
  Loader loader_;
  BatchFields fields_;
};

}  // namespace

BatchFields find_fields(const BetonReader& reader, const Pipeline& pipeline, bool normalize,
                        const FieldChoice& choice) {
  BatchFields fields{.outputs = resolve_outputs(reader, pipeline, normalize)};
  fields.image = find_output(reader, fields.outputs, choice.image, kInputs,
                             "an image, array, text or other input");
  fields.label = find_output(reader, fields.outputs, choice.label, kLabels, "an integer or float");
  return fields;
}

Batch view_host_batch(const HostBatch& host, const BatchFields& fields) {
  Batch batch{.fields = {},
              .sample_ids = host.sample_ids,
              .image_index = fields.image,
              .label_index = fields.label};
  for (const HostTensor& field : host.fields) {
    batch.fields.push_back(
        {field.name, at::from_blob(
                         field.data, field.shape, [memory = host.memory](void*) {},
                         at::TensorOptions(scalar_type(field.type)))});
  }
  return batch;
}

std::unique_ptr<BatchSource> make_batch_source(const BetonReader& reader, const Pipeline& pipeline,
                                               const LoaderOptions& options,
                                               const FieldChoice& fields, at::Device device,
                                               at::ScalarType image_dtype) {
  LoaderOptions loader_options = options;
  loader_options.normalize = device.is_cpu();
  BatchFields found = find_fields(reader, pipeline, loader_options.normalize, fields);
  if (device.is_cpu()) {
    return std::make_unique<CpuBatchSource>(reader, pipeline, loader_options, std::move(found));
  }
  return make_cuda_batch_source(reader, pipeline, loader_options, std::move(found), device,
                                image_dtype);
}

}  // namespace precast::data
