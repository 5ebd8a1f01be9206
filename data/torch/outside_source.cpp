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
#include "data/outside/field_form.h"
#include "data/outside/producer_error.h"
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

/// Whether the values of an output are padded to the size of the largest one in each batch.
bool has_any_size(const Output& output) {
  if (const auto* const bytes = std::get_if<BytesOutput>(&output.kind)) return bytes->packed;
  const auto* const shaped = std::get_if<ShapedOutput>(&output.kind);
  return shaped != nullptr && shaped->size == ShapedOutput::Size::packed;
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

/// On a CPU: [N, C, H, W] float32 in channels_last.
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
      const auto place = static_cast<std::size_t>(i) * image_bytes;
      const ImageView image{.pixels = reinterpret_cast<const std::uint8_t*>(host.data) + place,
                            .height = static_cast<int>(height),
                            .width = static_cast<int>(width),
                            .stride = width * channels};
      write_pixels(image, format, out + place * sizeof(float));
    }
  });
  return images;
}

/// On a GPU: (pixel - mean) / std in float32, then rounded to the type of images.
at::Tensor normalize_on(at::Device device, const at::Tensor& pixels,
                        const NormalizeOptions& options, at::ScalarType type) {
  const auto constants = [&](const std::vector<double>& values) {
    return at::tensor(at::ArrayRef<double>(values), at::kFloat).view({1, -1, 1, 1}).to(device);
  };
  const at::Tensor images = pixels.to(device).permute({0, 3, 1, 2}).to(at::kFloat);
  return ((images - constants(options.mean)) / constants(options.std)).to(type);
}

class OutsideSource final : public BatchSource {
 public:
  OutsideSource(std::unique_ptr<OutsideBatches> batches, OutsideForm form, at::Device device,
                at::ScalarType image_dtype)
      : batches_(std::move(batches)),
        form_(std::move(form)),
        device_(device),
        image_dtype_(image_dtype) {
    for (const Output& output : form_.outputs) {
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
      batches_->begin(form_.checks_positions ? std::optional(at) : std::nullopt);
      return;
    }
    if (at < position_)
      throw ProducerError(
          fmt::format("expected epoch {} batch {} or later, got epoch {} batch {}. Batches that "
                      "another program makes cannot be read again",
                      position_.epoch, position_.batch, at.epoch, at.batch));
    position_ = at;
  }

  std::optional<Batch> next() override {
    if (position_.batch == form_.batches) return std::nullopt;
    const auto start = Clock::now();
    const std::optional<OutsideBatch> made = take();
    seconds_waited_ += std::chrono::duration<double>(Clock::now() - start).count();
    if (!made) return std::nullopt;
    Batch batch = convert(*made);
    ++position_.batch;
    unread_ = position_;
    return batch;
  }

  [[nodiscard]] std::int64_t size(int /*world*/) const override { return form_.batches; }
  [[nodiscard]] std::int64_t samples() const override { return form_.batches * form_.batch_size; }
  [[nodiscard]] double seconds_waited() const override { return seconds_waited_; }

 private:
  void set_size(std::int64_t image_size_px) {
    const BatchLayout layout(form_.outputs, form_.batch_size, image_size_px);
    forms_.clear();
    for (std::size_t i = 0; i < form_.outputs.size(); ++i) {
      const Output& output = form_.outputs[i];
      FieldForm form{
          .name = output.name, .types = {output.type}, .shape = layout.fields()[i].shape};
      if (normalized_image(output) != nullptr) form.types.push_back(ElementType::f32);
      if (has_any_size(output)) form.shape = {-1};
      forms_.push_back(std::move(form));
    }
  }

  /// Returns the batch at `position_`.
  std::optional<OutsideBatch> take() {
    while (std::optional<OutsideBatch> made = batches_->next()) {
      if (!is_before_pass(*made)) {
        warn_of_longer_epoch();
        check_next(*made);
        return made;
      }
      // Only these batches are before the batch that begin() was called with.
      if (!numbered_) batches_->skip(*made->position);
    }
    return std::nullopt;
  }

  /// Whether to skip this batch: it comes before the batch at which the run starts or resumes, or
  /// it is left over from an earlier pass that ended early. Returns false for a batch that was
  /// already read (check_next() then reports it). Advances `unread_`.
  bool is_before_pass(const OutsideBatch& made) {
    if (!form_.checks_positions || !made.position || *made.position >= position_) return false;
    if (numbered_ && (!*numbered_ || *made.position < unread_)) return false;
    unread_ = {.epoch = made.position->epoch, .batch = made.position->batch + 1};
    return true;
  }

  /// Logs once that the run does not use all batches of the producer's epochs. Call when the first
  /// batch of the pass has arrived: `unread_` then says how many batches the skipped epoch had.
  void warn_of_longer_epoch() {
    if (unread_.batch <= form_.batches || std::exchange(warned_, true)) return;
    log_warning(
        "data.batches_per_epoch: expected {0} batches in an epoch of the producer, got {1} (epoch "
        "{2}). The run skips all batches of an epoch after the first {0}. To use them, set the key "
        "to {1}",
        form_.batches, unread_.batch, unread_.epoch);
  }

  void check_next(const OutsideBatch& made) {
    if (!form_.checks_positions) return;
    if (numbered_.value_or(made.position.has_value()) != made.position.has_value())
      throw ProducerError(fmt::format(
          "{}: expected epoch and batch in all messages or in none, got a mix", made.name));
    if (made.position && *made.position != position_)
      throw ProducerError(fmt::format("{}: expected epoch {} batch {}, got epoch {} batch {}",
                                      made.name, position_.epoch, position_.batch,
                                      made.position->epoch, made.position->batch));
    if (!made.position && !numbered_ && position_ != RingPosition{} && !form_.accepts_gaps) {
      throw CheckpointError(fmt::format(
          "{}: expected epoch {} batch {}, at which this run resumes, got a batch without numbers. "
          "Number the batches, or accept any batches with --checkpoint.resume=force",
          made.name, position_.epoch, position_.batch));
    }
    numbered_ = made.position.has_value();
  }

  Batch convert(const OutsideBatch& made) {
    Batch batch{.fields = {},
                .sample_ids = made.host.sample_ids,
                .inputs = form_.inputs,
                .targets = form_.targets};
    for (std::size_t i = 0; i < form_.outputs.size(); ++i) {
      const HostTensor& host =
          find_output(made.host.fields, forms_[i], form_.batch_size, made.name);
      const bool has_classes =
          form_.classes.count > 0 && !form_.targets.empty() && form_.targets[0] == i;
      batch.fields.push_back({forms_[i].name, has_classes ? classes(host, made)
                                                          : values(host, form_.outputs[i], made)});
    }
    return batch;
  }

  /// Copies the values, since the producer could change its memory after the check.
  at::Tensor classes(const HostTensor& host, const OutsideBatch& made) {
    at::Tensor copy = at::empty(host.shape, at::TensorOptions(scalar_type(host.type)));
    std::memcpy(copy.mutable_data_ptr(), host.data, host.bytes());
    HostTensor copied = host;
    copied.data = static_cast<std::byte*>(copy.mutable_data_ptr());
    check_classes(copied, form_.classes, made.name);
    return copy.to(device_);
  }

  at::Tensor values(const HostTensor& host, const Output& output, const OutsideBatch& made) {
    const auto* const image = std::get_if<ImageOutput>(&output.kind);
    if (image == nullptr) return view_or_copy(host, made.host.memory).to(device_);
    if (normalized_image(output) != nullptr && host.type == ElementType::u8) {
      if (device_.is_cpu()) return normalize_on_cpu(host, normalize_.at(output.name));
      return normalize_on(device_, view_or_copy(host, made.host.memory), image->pipeline.normalize,
                          image_dtype_);
    }
    at::Tensor images = view_or_copy(host, made.host.memory);
    if (!image->channels_first) images = images.permute({0, 3, 1, 2});
    images = images.to(device_);
    return normalized_image(output) != nullptr ? images.to(image_dtype_) : images;
  }

  std::unique_ptr<OutsideBatches> batches_;
  OutsideForm form_;
  at::Device device_;
  at::ScalarType image_dtype_;
  std::map<std::string, Normalize> normalize_;
  /// One per output, for the image size of the pass.
  std::vector<FieldForm> forms_;
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

/// Adds an output to `form.outputs` unless it is already there. @return its index.
std::size_t add_output(OutsideForm& form, const Output& output) {
  const auto found = std::ranges::find(form.outputs, output.name, &Output::name);
  if (found == form.outputs.end()) {
    form.outputs.push_back(output);
    return form.outputs.size() - 1;
  }
  return static_cast<std::size_t>(found - form.outputs.begin());
}

}  // namespace

OutsideForm make_outside_form(const BetonReader& reader, const Pipeline& pipeline,
                              const FieldChoice& choice) {
  const BatchFields all =
      find_fields(reader, resolve_outputs(reader, pipeline, /*normalize=*/false), choice);
  OutsideForm form;
  for (const std::size_t i : all.inputs) form.inputs.push_back(add_output(form, all.outputs[i]));
  for (const std::size_t i : all.targets) form.targets.push_back(add_output(form, all.outputs[i]));
  return form;
}

OutsideForm make_image_form(int channels) {
  OutsideForm form;
  Output image{.name = "image", .type = ElementType::u8, .kind = ImageOutput{}};
  ImagePipeline& pipeline = std::get<ImageOutput>(image.kind).pipeline;
  pipeline.channels = channels;
  if (channels == 1) pipeline.normalize = NormalizeOptions::of_luma();
  form.outputs = {std::move(image),
                  {.name = "label", .type = ElementType::i64, .kind = IntegerOutput{}}};
  form.inputs = {0};
  form.targets = {1};
  return form;
}

std::uint64_t outside_message_bytes(const OutsideForm& form, std::int64_t image_size_px) {
  constexpr std::uint64_t kRoom = std::uint64_t{1} << 20;
  const BatchLayout layout(form.outputs, form.batch_size, image_size_px);
  return layout.bytes() * sizeof(float) + kRoom;
}

std::unique_ptr<BatchSource> make_outside_source(std::unique_ptr<OutsideBatches> batches,
                                                 OutsideForm form, at::Device device,
                                                 at::ScalarType image_dtype) {
  return std::make_unique<OutsideSource>(std::move(batches), std::move(form), device, image_dtype);
}

}  // namespace precast::data
