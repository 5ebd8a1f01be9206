#include "data/loader/memory_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/loader/batch_layout.h"
#include "data/loader/image_planner.h"
#include "data/loader/loader.h"
#include "data/loader/stored_pixels.h"

namespace precast::data {
namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr double kMebibyte = 1 << 20;
  const double mebibytes = static_cast<double>(bytes) / kMebibyte;
  if (mebibytes >= 10 * 1024) return fmt::format("{:.1f} GiB", mebibytes / 1024);
  return mebibytes < 10 ? fmt::format("{:.1f} MiB", mebibytes)
                        : fmt::format("{:.0f} MiB", mebibytes);
}

/// Estimates the memory of one worker's decoders: the pixels of the largest stored image and, if
/// images are normalised, the uint8 pixels of the resized image.
std::uint64_t decoder_bytes(const BetonReader& reader, const std::vector<Output>& outputs,
                            std::int64_t image_size_px, bool normalize) {
  std::uint64_t largest = 0;
  for (std::size_t field = 0; field < reader.fields().size(); ++field) {
    const FieldInfo& info = reader.fields()[field];
    // Pixels that are not 8-bit RGB are also copied. The 8 bytes before them, which state height
    // and width, are counted as pixels.
    const bool copied = info.tag.kind == FieldTag::Kind::pixels && holds_pixels(info) &&
                        (info.tag.channels != 3 || info.tag.dtype != "|u1");
    if (info.type != FieldType::image && !copied) continue;
    const std::uint64_t pixel_bytes = info.tag.channels * (info.tag.dtype == "<u2" ? 2 : 1);
    for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
      const std::uint64_t pixels =
          copied ? std::max<std::uint64_t>(8, reader.blob_bytes(sample, field)) / pixel_bytes
                 : reader.image_pixels(sample, field);
      largest = std::max(largest, pixels * 3);
    }
  }
  // Arrays that are not RGB are also copied if they are images of the pipeline.
  for (const Output& output : outputs) {
    if (!is<ImageOutput>(output)) continue;
    const std::vector<std::uint64_t>& shape = reader.fields()[output.field].shape;
    if (shape.size() == 2 || (shape.size() == 3 && shape[2] != 3))
      largest = std::max(largest, shape[0] * shape[1] * 3);
  }
  const auto side = static_cast<std::uint64_t>(image_size_px);
  return largest + (normalize ? 3 * side * side : 0);
}

}  // namespace

std::string MemoryPlan::text() const {
  std::string line =
      mapped > 0 ? fmt::format("{} mapped (page cache, shared); ", size_text(mapped)) : "";
  line += fmt::format("{} own:", size_text(own()));
  if (cache > 0) line += fmt::format(" cached pages {},", size_text(cache));
  line += fmt::format(" batches {}{}, decoders {}, metadata {}, order {}", size_text(batches),
                      batches_locked ? " (page-locked)" : "", size_text(decoders),
                      size_text(metadata), size_text(order));
  if (index > 0) line += fmt::format(", JPEG index {}", size_text(index));
  if (device > 0) line += fmt::format("; {} on the GPU: the stored images", size_text(device));
  if (unbounded > 0) {
    line += fmt::format(
        "; {} of the batches is for values of varying size: each row has room for the largest "
        "value in the file. Set pad_to to use less",
        size_text(unbounded));
  }
  return line;
}

nlohmann::ordered_json MemoryPlan::json() const {
  return {{"mapped_bytes", mapped},       {"own_bytes", own()},
          {"cache_bytes", cache},         {"batch_bytes", batches},
          {"unbounded_bytes", unbounded}, {"batches_page_locked", batches_locked},
          {"decoder_bytes", decoders},    {"metadata_bytes", metadata},
          {"order_bytes", order},         {"index_bytes", index},
          {"device_bytes", device}};
}

MemoryPlan plan_memory(const BetonReader& reader, const Pipeline& pipeline,
                       const LoaderOptions& options, std::int64_t image_size_px, int world) {
  MemoryPlan plan;
  plan.metadata = reader.memory_bytes();
  const std::vector<Output> outputs = outputs_of_loader(reader, pipeline, options);
  const std::uint64_t samples = options.order ? options.order->size() : reader.size();
  const std::int64_t batch_samples = samples_of_batch(samples, options, world);
  const BatchLayout layout(outputs, batch_samples, image_size_px);
  plan.batches = layout.bytes() * static_cast<std::uint64_t>(options.batches_ahead + 1);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_packed(outputs[i])) plan.unbounded += layout.fields()[i].sample_bytes;
  plan.unbounded *= static_cast<std::uint64_t>(batch_samples * (options.batches_ahead + 1));
  plan.batches_locked = static_cast<bool>(options.allocator.allocate);
  if (options.plan_images) plan.device = planned_pixel_bytes(reader, outputs);
  if (!options.plan_images || std::ranges::any_of(outputs, is<MaskOutput>)) {
    plan.decoders = static_cast<std::uint64_t>(options.workers) *
                    decoder_bytes(reader, outputs, image_size_px, options.normalize);
  }
  // The ids of this pass, those of the next pass, and a copy while the next pass's ids are
  // computed; then the order itself.
  plan.order = 3 * samples * sizeof(std::uint64_t);
  if (options.order) plan.order += options.order->memory_bytes();
  if (options.jpeg_index) plan.index = options.jpeg_index->max_memory_bytes();
  if (reader.disk() != nullptr) {
    plan.cache = options.cache_bytes;
    // At most one planned read per sample of a pass: an Extent (24 bytes) and its index (4 bytes).
    plan.order += samples / static_cast<std::uint64_t>(world) * 28;
  } else {
    plan.mapped = reader.file_bytes();
  }
  return plan;
}

}  // namespace precast::data
