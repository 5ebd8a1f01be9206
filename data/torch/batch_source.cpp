#include "data/torch/batch_source.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "data/loader/batch_layout.h"
#include "data/torch/batch_views.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

using IsOfKind = bool (*)(const Output&);

/// Returns the indices of the outputs with these names. If `names` is empty, tries the kinds in
/// order, and returns the index of the first output of the first kind that occurs. @throws
/// DataError if no output matches
std::vector<std::size_t> find_outputs(const BetonReader& reader, const std::vector<Output>& outputs,
                                      const std::vector<std::string>& names,
                                      std::span<const IsOfKind> kinds, std::string_view what,
                                      std::string_view key) {
  const auto index_of = [&](auto found) {
    return static_cast<std::size_t>(found - outputs.begin());
  };
  std::vector<std::size_t> indices;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(outputs, name, &Output::name);
    if (found == outputs.end()) {
      std::vector<std::string> known;
      for (const Output& output : outputs) known.push_back(output.name);
      throw DataError(fmt::format("{}: {}: expected an output of the pipeline, got '{}'. {}",
                                  reader.path().string(), key, name, suggest(name, known)));
    }
    indices.push_back(index_of(found));
  }
  for (const IsOfKind kind : kinds) {
    if (!indices.empty()) break;
    const auto found = std::ranges::find_if(outputs, kind);
    if (found != outputs.end()) indices.push_back(index_of(found));
  }
  if (!indices.empty()) return indices;
  throw DataError(fmt::format(
      "{}: expected an output of the pipeline that is {}, got none. To use another output, "
      "name it in {}",
      reader.path().string(), what, key));
}

/// The kinds of outputs that are inputs or targets if the recipe does not name them, in order of
/// preference. A file of text or tables has no image.
constexpr std::array<IsOfKind, 4> kInputs = {is<ImageOutput>, is<ShapedOutput>, is<ArrayOutput>,
                                             is<BytesOutput>};
constexpr std::array<IsOfKind, 2> kTargets = {is<IntegerOutput>, is<FloatingOutput>};

/// Returns a tensor [samples, shape...] in which the values of each sample rise from -2 to 2, or,
/// for bytes, from 0 to 255.
at::Tensor ramps(std::int64_t samples, std::vector<std::int64_t> shape, at::Device device,
                 at::ScalarType type) {
  const bool bytes = type == at::kByte;
  const std::int64_t values = c10::multiply_integers(shape);
  const at::Tensor one =
      at::linspace(bytes ? 0 : -2, bytes ? 255 : 2, values, at::device(device).dtype(at::kFloat));
  shape.insert(shape.begin(), 1);
  const at::Tensor image = one.to(type).view(shape);
  shape.front() = samples;
  return image.expand(shape).contiguous();
}

class CpuBatchSource final : public BatchSource {
 public:
  CpuBatchSource(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options,
                 BatchFields fields, const SharedRing& ring)
      : loader_(reader, pipeline, std::move(options), ring), fields_(std::move(fields)) {}

  void begin_epoch(const EpochRequest& request) override { loader_.begin_epoch(request); }

  std::optional<Batch> next() override {
    const std::optional<HostBatch> host = loader_.next();
    if (!host) return std::nullopt;
    Batch batch = view_host_batch(*host, fields_);
    for (std::size_t i = 0; i < batch.fields.size(); ++i) {
      const auto* const image = std::get_if<ImageOutput>(&fields_.outputs[i].kind);
      if (image == nullptr || image->channels_first) continue;
      // [N, H, W, C] in memory is [N, C, H, W] in channels_last: no copy.
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
  [[nodiscard]] std::vector<ReplacedSample> replaced() const override { return loader_.replaced(); }

 private:
  SharedLoader loader_;
  BatchFields fields_;
};

}  // namespace

at::ScalarType scalar_type(ElementType type) {
  constexpr at::ScalarType kTypes[] = {
      at::kByte,  at::kFloat, at::kLong,   at::kDouble, at::kHalf,   at::kBFloat16, at::kChar,
      at::kShort, at::kInt,   at::kUInt16, at::kUInt32, at::kUInt64, at::kBool};
  return kTypes[static_cast<int>(type)];
}

BatchFields find_fields(const BetonReader& reader, std::vector<Output> outputs,
                        const FieldChoice& choice) {
  BatchFields fields{.outputs = std::move(outputs), .inputs = {}, .targets = {}};
  fields.inputs = find_outputs(reader, fields.outputs, choice.inputs, kInputs,
                               "an image, array, text or bytes", "data.inputs");
  if (choice.needs_target || !choice.targets.empty()) {
    fields.targets = find_outputs(reader, fields.outputs, choice.targets, kTargets,
                                  "an integer or float", "data.targets");
  }
  return fields;
}

Batch view_host_batch(const HostBatch& host, const BatchFields& fields) {
  Batch batch{.fields = {},
              .sample_ids = host.sample_ids,
              .inputs = fields.inputs,
              .targets = fields.targets};
  for (const HostTensor& field : host.fields) {
    batch.fields.push_back(
        {field.name, at::from_blob(
                         field.data, field.shape, [memory = host.memory](void*) {},
                         at::TensorOptions(scalar_type(field.type)))});
  }
  return batch;
}

BatchMaker make_batch_maker(const BetonReader& reader, const Pipeline& pipeline,
                            const FieldChoice& fields, at::Device device,
                            at::ScalarType image_dtype) {
  auto found = std::make_shared<const BatchFields>(
      find_fields(reader, resolve_outputs(reader, pipeline, /*normalize=*/true), fields));
  return [found, device, image_dtype](std::int64_t samples, std::int64_t image_size_px) {
    const BatchLayout layout(found->outputs, samples, image_size_px);
    Batch batch{.fields = {},
                .sample_ids = std::vector<std::uint64_t>(static_cast<std::size_t>(samples)),
                .inputs = found->inputs,
                .targets = found->targets};
    for (std::size_t i = 0; i < found->outputs.size(); ++i) {
      const Output& output = found->outputs[i];
      std::vector<std::int64_t> shape = layout.fields()[i].shape;
      at::Tensor values;
      if (const auto* const image = std::get_if<ImageOutput>(&output.kind)) {
        values = ramps(samples, shape, device,
                       image->pipeline.type ? scalar_type(output.type) : image_dtype);
        if (!image->channels_first) values = values.permute({0, 3, 1, 2});
      } else {
        shape.insert(shape.begin(), samples);
        values = at::zeros(shape, at::device(device).dtype(scalar_type(output.type)));
      }
      batch.fields.push_back({output.name, values});
    }
    return batch;
  };
}

std::unique_ptr<BatchSource> make_batch_source(const BetonReader& reader, const Pipeline& pipeline,
                                               const LoaderOptions& options,
                                               const FieldChoice& fields, at::Device device,
                                               at::ScalarType image_dtype, const SharedRing& ring) {
  LoaderOptions loader_options = options;
  loader_options.normalize = device.is_cpu();
  BatchFields found =
      find_fields(reader, outputs_of_loader(reader, pipeline, loader_options), fields);
  if (device.is_cpu()) {
    require(!options.plan_images, "images are made from plans on a GPU");
    return std::make_unique<CpuBatchSource>(reader, pipeline, loader_options, std::move(found),
                                            ring);
  }
  return make_cuda_batch_source(reader, pipeline, loader_options, std::move(found), device,
                                image_dtype, ring);
}

}  // namespace precast::data
