#include "data/torch/outside_source.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "data/image/image.h"
#include "data/image/normalize.h"
#include "data/image/pixel_format.h"
#include "data/loader/batch_layout.h"
#include "data/outside/producer_error.h"
#include "data/outside/tensor_spec.h"
#include "data/torch/batch_views.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the image output if the producer may send u8 images, which are normalised here;
/// otherwise null.
const ImageOutput* normalized_image(const Output& output) {
  const auto* const image = std::get_if<ImageOutput>(&output.kind);
  return image != nullptr && !image->pipeline.type ? image : nullptr;
}

/// Returns a view of the tensor's memory, or a copy if the memory is not aligned for the type.
at::Tensor view_or_copy(const HostTensor& host, const std::shared_ptr<const void>& memory) {
  const at::TensorOptions options(scalar_type(host.type));
  if (reinterpret_cast<std::uintptr_t>(host.data) % element_size(host.type) == 0 &&
      host.bytes() > 0)
    return at::from_blob(
        host.data, host.shape, [memory](void*) {}, options);
  at::Tensor copy = at::empty(host.shape, options);
  if (host.bytes() > 0) std::memcpy(copy.mutable_data_ptr(), host.data, host.bytes());
  return copy;
}

/// Returns normalised images [N, C, H, W] as float32 in channels_last.
at::Tensor normalize_on_cpu(const HostTensor& host, const Normalize& normalize) {
  const std::int64_t samples = host.shape[0], height = host.shape[1], width = host.shape[2],
                     channels = host.shape[3];
  at::Tensor images =
      at::empty({samples, channels, height, width}, at::kFloat, at::MemoryFormat::ChannelsLast);
  auto* const out = static_cast<std::byte*>(images.mutable_data_ptr());
  const PixelFormat format{
      .type = ElementType::f32, .normalize = &normalize, .channels = static_cast<int>(channels)};
  const auto image_bytes = static_cast<std::size_t>(height * width * channels);
  at::parallel_for(0, samples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto offset = static_cast<std::size_t>(i) * image_bytes;
      const ImageView image{.pixels = reinterpret_cast<const std::uint8_t*>(host.data) + offset,
                            .height = static_cast<int>(height),
                            .width = static_cast<int>(width),
                            .stride = width * channels};
      write_pixels(image, format, out + offset * sizeof(float));
    }
  });
  return images;
}

/// Returns (pixel - mean) / std on `device`, computed in float32, then rounded to `type`.
at::Tensor normalize_on_gpu(at::Device device, const at::Tensor& pixels,
                            const NormalizeOptions& options, at::ScalarType type) {
  const auto constants = [&](const std::vector<double>& values) {
    return at::tensor(at::ArrayRef<double>(values), at::kFloat).view({1, -1, 1, 1}).to(device);
  };
  const at::Tensor images = pixels.to(device).permute({0, 3, 1, 2}).to(at::kFloat);
  return ((images - constants(options.mean)) / constants(options.std)).to(type);
}

class OutsideSource final : public BatchSource {
 public:
  OutsideSource(std::unique_ptr<OutsideBatches> batches, OutsideSpec spec, at::Device device,
                at::ScalarType image_dtype)
      : batches_(std::move(batches)),
        spec_(std::move(spec)),
        device_(device),
        image_dtype_(image_dtype) {
    for (const Output& output : spec_.outputs) {
      const ImageOutput* const image = normalized_image(output);
      if (image != nullptr) normalize_.try_emplace(output.name, image->pipeline.normalize);
    }
  }

  void begin_epoch(const EpochRequest& request) override {
    require(request.world == 1, "batches that another program makes are for one rank");
    const RingPosition at{.epoch = request.epoch, .batch = request.first_batch};
    set_size(request.image_size_px);
    if (!std::exchange(begun_, true)) {
      position_ = at;
      batches_->begin(spec_.checks_positions ? std::optional(at) : std::nullopt);
      return;
    }
    if (at < position_)
      throw ProducerError(
          fmt::format("expected {} or later, got {}. Batches that another program makes cannot be "
                      "read again",
                      text_of(position_), text_of(at)));
    position_ = at;
  }

  std::optional<Batch> next() override {
    if (position_.batch == spec_.batches) return std::nullopt;
    const auto start = Clock::now();
    const std::optional<OutsideBatch> received = take();
    seconds_waited_ += std::chrono::duration<double>(Clock::now() - start).count();
    if (!received) return std::nullopt;
    Batch batch = convert(*received);
    ++position_.batch;
    unread_ = position_;
    return batch;
  }

  [[nodiscard]] std::int64_t size(int /*world*/) const override { return spec_.batches; }
  [[nodiscard]] std::int64_t samples() const override { return spec_.batches * spec_.batch_size; }
  [[nodiscard]] double seconds_waited() const override { return seconds_waited_; }

 private:
  void set_size(std::int64_t image_size_px) {
    const BatchLayout layout(spec_.outputs, spec_.batch_size, image_size_px);
    specs_.clear();
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      const Output& output = spec_.outputs[i];
      TensorSpec spec{
          .name = output.name, .types = {output.type}, .shape = layout.fields()[i].shape};
      if (normalized_image(output) != nullptr) spec.types.push_back(ElementType::f32);
      if (is_packed(output)) spec.shape = {-1};
      specs_.push_back(std::move(spec));
    }
  }

  /// Returns the batch at `position_`; nothing if OutsideBatches::next() returns nothing.
  std::optional<OutsideBatch> take() {
    while (std::optional<OutsideBatch> received = batches_->next()) {
      if (!is_before_pass(*received)) {
        warn_of_longer_epoch();
        check_next(*received);
        return received;
      }
      // Until the first batch is used, skipped batches are those before the position that was
      // passed to OutsideBatches::begin().
      if (!numbered_) batches_->skip(*received->position);
    }
    return std::nullopt;
  }

  /// Whether to skip this batch: it comes before the batch at which the run starts or resumes, or
  /// it is left over from an earlier pass that ended early. Returns false for a batch that was
  /// already read (check_next() then reports it). Advances `unread_`.
  bool is_before_pass(const OutsideBatch& received) {
    if (!spec_.checks_positions || !received.position || *received.position >= position_)
      return false;
    if (numbered_ && (!*numbered_ || *received.position < unread_)) return false;
    unread_ = {.epoch = received.position->epoch, .batch = received.position->batch + 1};
    return true;
  }

  /// Logs once that the run does not use all batches of the producer's epochs. Call when the first
  /// batch of the pass has arrived: `unread_` then says how many batches the skipped epoch had.
  void warn_of_longer_epoch() {
    if (unread_.batch <= spec_.batches || std::exchange(warned_, true)) return;
    log_warning(
        "data.batches_per_epoch: expected {0} batches in an epoch of the producer, got {1} (epoch "
        "{2}). The run skips all batches of an epoch after the first {0}. To use them, set the key "
        "to {1}",
        spec_.batches, unread_.batch, unread_.epoch);
  }

  void check_next(const OutsideBatch& received) {
    if (!spec_.checks_positions) return;
    if (numbered_.value_or(received.position.has_value()) != received.position.has_value())
      throw ProducerError(fmt::format(
          "{}: expected epoch and batch in all messages or in none, got a mix", received.name));
    if (received.position && *received.position != position_)
      throw ProducerError(fmt::format("{}: expected {}, got {}", received.name, text_of(position_),
                                      text_of(*received.position)));
    if (!received.position && !numbered_ && position_ != RingPosition{} &&
        !spec_.accepts_unnumbered) {
      throw CheckpointError(
          fmt::format("{}: expected {}, at which this run resumes, got a batch without numbers. "
                      "Number the batches, or accept any batches with --checkpoint.resume=force",
                      received.name, text_of(position_)));
    }
    numbered_ = received.position.has_value();
  }

  Batch convert(const OutsideBatch& received) {
    Batch batch{.fields = {},
                .sample_ids = received.host.sample_ids,
                .inputs = spec_.inputs,
                .targets = spec_.targets};
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      const HostTensor& host =
          find_output(received.host.fields, specs_[i], spec_.batch_size, received.name);
      const bool has_classes =
          spec_.classes.count > 0 && !spec_.targets.empty() && spec_.targets[0] == i;
      batch.fields.push_back({specs_[i].name, has_classes
                                                  ? classes(host, received)
                                                  : values(host, spec_.outputs[i], received)});
    }
    return batch;
  }

  /// Copies the values, since the producer could change its memory after the check.
  at::Tensor classes(const HostTensor& host, const OutsideBatch& received) {
    at::Tensor copy = at::empty(host.shape, at::TensorOptions(scalar_type(host.type)));
    std::memcpy(copy.mutable_data_ptr(), host.data, host.bytes());
    HostTensor copied = host;
    copied.data = static_cast<std::byte*>(copy.mutable_data_ptr());
    check_classes(copied, spec_.classes, received.name);
    return copy.to(device_);
  }

  at::Tensor values(const HostTensor& host, const Output& output, const OutsideBatch& received) {
    const auto* const image = std::get_if<ImageOutput>(&output.kind);
    if (image == nullptr) return view_or_copy(host, received.host.memory).to(device_);
    if (normalized_image(output) != nullptr && host.type == ElementType::u8) {
      if (device_.is_cpu()) return normalize_on_cpu(host, normalize_.at(output.name));
      return normalize_on_gpu(device_, view_or_copy(host, received.host.memory),
                              image->pipeline.normalize, image_dtype_);
    }
    at::Tensor images = view_or_copy(host, received.host.memory);
    if (!image->channels_first) images = images.permute({0, 3, 1, 2});
    images = images.to(device_);
    return normalized_image(output) != nullptr ? images.to(image_dtype_) : images;
  }

  std::unique_ptr<OutsideBatches> batches_;
  OutsideSpec spec_;
  at::Device device_;
  at::ScalarType image_dtype_;
  std::map<std::string, Normalize> normalize_;
  /// One per output, for the image size of the pass.
  std::vector<TensorSpec> specs_;
  bool begun_ = false;
  /// Whether the batches have positions; empty before the first batch.
  std::optional<bool> numbered_;
  /// The position of the next batch.
  RingPosition position_;
  /// The producer's batches before this position were read or skipped.
  RingPosition unread_;
  /// Whether warn_of_longer_epoch() has logged its warning.
  bool warned_ = false;
  double seconds_waited_ = 0;
};

/// Adds an output to `spec.outputs` unless it is already there. @return its index.
std::size_t add_output(OutsideSpec& spec, const Output& output) {
  const auto found = std::ranges::find(spec.outputs, output.name, &Output::name);
  if (found == spec.outputs.end()) {
    spec.outputs.push_back(output);
    return spec.outputs.size() - 1;
  }
  return static_cast<std::size_t>(found - spec.outputs.begin());
}

}  // namespace

OutsideSpec make_outside_spec(const BetonReader& reader, const Pipeline& pipeline,
                              const FieldChoice& choice) {
  const BatchFields all =
      find_fields(reader, resolve_outputs(reader, pipeline, /*normalize=*/false), choice);
  OutsideSpec spec;
  for (const std::size_t i : all.inputs) spec.inputs.push_back(add_output(spec, all.outputs[i]));
  for (const std::size_t i : all.targets) spec.targets.push_back(add_output(spec, all.outputs[i]));
  return spec;
}

OutsideSpec make_image_spec(int channels) {
  OutsideSpec spec;
  Output image{.name = "image", .type = ElementType::u8, .kind = ImageOutput{}};
  ImagePipeline& pipeline = std::get<ImageOutput>(image.kind).pipeline;
  pipeline.channels = channels;
  if (channels == 1) pipeline.normalize = NormalizeOptions::of_luma();
  spec.outputs = {std::move(image),
                  {.name = "label", .type = ElementType::i64, .kind = IntegerOutput{}}};
  spec.inputs = {0};
  spec.targets = {1};
  return spec;
}

std::uint64_t max_outside_message_bytes(const OutsideSpec& spec, std::int64_t image_size_px) {
  constexpr std::uint64_t kHeadroomBytes = std::uint64_t{1} << 20;
  const BatchLayout layout(spec.outputs, spec.batch_size, image_size_px);
  return layout.bytes() * sizeof(float) + kHeadroomBytes;
}

std::unique_ptr<BatchSource> make_outside_source(std::unique_ptr<OutsideBatches> batches,
                                                 OutsideSpec spec, at::Device device,
                                                 at::ScalarType image_dtype) {
  return std::make_unique<OutsideSource>(std::move(batches), std::move(spec), device, image_dtype);
}

}  // namespace precast::data
