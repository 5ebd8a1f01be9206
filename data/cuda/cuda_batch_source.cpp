#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <deque>
#include <exception>
#include <utility>
#include <vector>

#include "data/batch_views.h"
#include "data/cuda/normalize.h"
#include "data/look_ahead.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

/// Page-locked memory: the only kind that a GPU copies from while the program goes on.
BufferAllocator pinned_allocator() {
  return {[](std::size_t bytes) {
            void* memory = nullptr;
            const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
            if (status != cudaSuccess) {
              throw DeviceError(fmt::format("loader: cannot page-lock {} bytes: {}", bytes,
                                            cudaGetErrorString(status)));
            }
            return static_cast<std::byte*>(memory);
          },
          [](std::byte* memory) { cudaFreeHost(memory); }};
}

NormalizeConstants constants_of(const NormalizeOptions& options) {
  NormalizeConstants constants{};
  for (std::size_t c = 0; c < 3; ++c) {
    constants.mean[c] = static_cast<float>(options.mean.at(c));
    constants.std[c] = static_cast<float>(options.std.at(c));
  }
  return constants;
}

PixelType pixel_type_of(at::ScalarType type) {
  if (type == at::kHalf) return PixelType::f16;
  if (type == at::kBFloat16) return PixelType::bf16;
  require(type == at::kFloat, "images are float32, float16 or bfloat16");
  return PixelType::f32;
}

/// Copies and normalises on a stream of its own. The consumer's stream waits for the copy's event;
/// a batch's host memory goes back to the loader only when that event has happened.
class CudaBatchSource final : public BatchSource {
 public:
  CudaBatchSource(const BetonReader& reader, const Pipeline& pipeline, LoaderOptions options,
                  BatchFields fields, at::Device device, at::ScalarType image_dtype)
      : loader_(reader, pipeline, with_pinned_memory(std::move(options))),
        fields_(std::move(fields)),
        device_(device),
        image_dtype_(image_dtype),
        output_type_(pixel_type_of(image_dtype)),
        copy_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}

  ~CudaBatchSource() override {
    try {
      wait_for_copies();
    } catch (const std::exception& failure) {
      // Only a broken device gets here; what broke it is being reported already.
      log_warning("loader: the last copies to the GPU failed: {}", failure.what());
    }
  }

  void begin_epoch(const EpochRequest& request) override {
    wait_for_copies();
    ahead_.restart();
    in_copy_.clear();
    loader_.begin_epoch(request);
  }

  std::optional<Batch> next() override {
    std::optional<Copied> copied =
        ahead_.next([this] { return copy_next(); }, [this] { return loader_.ready(); });
    release_copied();
    if (!copied) return std::nullopt;
    const c10::cuda::CUDAStream consumer = c10::cuda::getCurrentCUDAStream(device_.index());
    copied->done->block(consumer);
    for (const NamedTensor& field : copied->batch.fields) {
      // The caching allocator must not hand the memory out before the consumer's kernels are done
      // with it.
      c10::cuda::CUDACachingAllocator::recordStream(field.tensor.storage().data_ptr(), consumer);
    }
    in_copy_.push_back({copied->done, std::move(copied->host)});
    return std::move(copied->batch);
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
  using Event = std::shared_ptr<at::cuda::CUDAEvent>;
  struct Copied {
    Batch batch;
    HostBatch host;
    Event done;
  };
  struct InCopy {
    Event done;
    HostBatch host;
  };

  static LoaderOptions with_pinned_memory(LoaderOptions options) {
    options.allocator = pinned_allocator();
    return options;
  }

  std::optional<Copied> copy_next() {
    std::optional<HostBatch> host = loader_.next();
    if (!host) return std::nullopt;
    const c10::cuda::CUDAStreamGuard on_copy_stream(copy_stream_);
    Batch batch = view_host_batch(*host, fields_);
    for (std::size_t i = 0; i < batch.fields.size(); ++i) {
      at::Tensor& tensor = batch.fields[i].tensor;
      const Output& output = fields_.outputs[i];
      tensor = output.kind == OutputKind::image ? copy_images(tensor, output) : copy(tensor);
    }
    auto done = std::make_shared<at::cuda::CUDAEvent>();
    done->record(copy_stream_);
    return Copied{std::move(batch), std::move(*host), std::move(done)};
  }

  at::Tensor copy(const at::Tensor& host) {
    at::Tensor on_device = at::empty(host.sizes(), host.options().device(device_));
    C10_CUDA_CHECK(cudaMemcpyAsync(on_device.mutable_data_ptr(), host.const_data_ptr(),
                                   host.nbytes(), cudaMemcpyHostToDevice, copy_stream_));
    return on_device;
  }

  /// To [N, 3, H, W] on the device: as the loader made them if the pipeline says what they come out
  /// as, else from [N, H, W, 3] uint8 to normalised floats.
  at::Tensor copy_images(const at::Tensor& host, const Output& output) {
    const at::Tensor bytes = copy(host);
    if (output.image.type) {
      return output.channels_first ? bytes : bytes.permute({0, 3, 1, 2});
    }
    at::Tensor images = at::empty(host.sizes(), at::device(device_).dtype(image_dtype_));
    const auto pixels = static_cast<std::size_t>(host.numel() / 3);
    normalize(bytes.const_data_ptr<std::uint8_t>(), pixels, constants_of(output.image.normalize),
              output_type_, images.mutable_data_ptr(), copy_stream_);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const at::Tensor planes = images.permute({0, 3, 1, 2});
    return output.image.channels_first ? planes.contiguous() : planes;
  }

  void release_copied() {
    while (!in_copy_.empty() && in_copy_.front().done->query()) in_copy_.pop_front();
  }

  void wait_for_copies() {
    for (const Copied& copied : ahead_.items()) copied.done->synchronize();
    for (const InCopy& copy : in_copy_) copy.done->synchronize();
  }

  Loader loader_;
  BatchFields fields_;
  at::Device device_;
  at::ScalarType image_dtype_;
  PixelType output_type_;
  c10::cuda::CUDAStream copy_stream_;
  LookAhead<Copied> ahead_{kCopiedAhead};
  std::deque<InCopy> in_copy_;
};

}  // namespace

std::unique_ptr<BatchSource> make_cuda_batch_source(const BetonReader& reader,
                                                    const Pipeline& pipeline,
                                                    const LoaderOptions& options,
                                                    BatchFields fields, at::Device device,
                                                    at::ScalarType image_dtype) {
  return std::make_unique<CudaBatchSource>(reader, pipeline, options, std::move(fields), device,
                                           image_dtype);
}

}  // namespace precast::data
