#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/loader/image_plan.h"
#include "data/loader/image_planner.h"
#include "data/torch/batch_views.h"
#include "data/torch/cuda/normalize.h"
#include "data/torch/cuda/planned_images.h"
#include "data/torch/device_images.h"
#include "data/torch/device_prefetcher.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

/// Page-locked memory: the only kind from which a GPU copies asynchronously.
BufferAllocator pinned_allocator() {
  return {[](std::size_t bytes) {
            void* memory = nullptr;
            const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
            if (status != cudaSuccess) {
              const std::string text = fmt::format("loader: cannot page-lock {} bytes: {}", bytes,
                                                   cudaGetErrorString(status));
              if (status == cudaErrorMemoryAllocation) throw Error(text, ExitCode::out_of_memory);
              throw DeviceError(text);
            }
            return static_cast<std::byte*>(memory);
          },
          [](std::byte* memory) { cudaFreeHost(memory); }};
}

/// Page-locks a ring's memory, which this process maps read-only. If the device cannot do this,
/// copies from that memory are synchronous.
std::shared_ptr<void> page_lock(std::span<const std::byte> memory) {
  void* const at = const_cast<std::byte*>(memory.data());
  const cudaError_t status =
      cudaHostRegister(at, memory.size(), cudaHostRegisterPortable | cudaHostRegisterReadOnly);
  if (status == cudaSuccess) return {at, [](void* locked) { cudaHostUnregister(locked); }};
  static_cast<void>(cudaGetLastError());
  log_warning("ring: cannot page-lock {} bytes: {}. Copies to the GPU are slower", memory.size(),
              cudaGetErrorString(status));
  return nullptr;
}

NormalizeConstants constants_of(const NormalizeOptions& options) {
  NormalizeConstants constants{};
  for (std::size_t c = 0; c < 3; ++c) {
    constants.mean[c] = static_cast<float>(options.mean_of(c));
    constants.std[c] = static_cast<float>(options.std_of(c));
  }
  return constants;
}

PixelType pixel_type_of(at::ScalarType type) {
  if (type == at::kHalf) return PixelType::f16;
  if (type == at::kBFloat16) return PixelType::bf16;
  require(type == at::kFloat, "images are float32, float16 or bfloat16");
  return PixelType::f32;
}

/// Copies and normalises on a separate stream.
class CudaCopier {
 public:
  using Batch = precast::Batch;
  using Event = std::shared_ptr<at::cuda::CUDAEvent>;

  /// The stored images of the fields whose batches contain plans, by field.
  using StoredFields = std::map<std::size_t, DeviceImages>;

  /// @param images filled before the first copy().
  CudaCopier(BatchFields fields, std::shared_ptr<const StoredFields> images, at::Device device,
             at::ScalarType image_dtype)
      : fields_(std::move(fields)),
        images_(std::move(images)),
        device_(device),
        image_dtype_(image_dtype),
        output_type_(pixel_type_of(image_dtype)),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}

  Batch copy(const HostBatch& host) {
    // Memory allocated here belongs to the copy stream, so temporaries may be freed immediately.
    const c10::cuda::CUDAStreamGuard on_copy_stream(stream_);
    Batch batch = view_host_batch(host, fields_);
    for (std::size_t i = 0; i < batch.fields.size(); ++i) {
      at::Tensor& tensor = batch.fields[i].tensor;
      const auto* const image = std::get_if<ImageOutput>(&fields_.outputs[i].kind);
      if (image == nullptr) {
        tensor = copy(tensor);
      } else if (image->max_stored_side_px) {
        tensor = make_images(tensor, fields_.outputs[i].field, *image);
      } else {
        tensor = copy_images(tensor, *image);
      }
    }
    return batch;
  }

  [[nodiscard]] Event record() const {
    auto event = std::make_shared<at::cuda::CUDAEvent>(cudaEventDefault);
    event->record(stream_);
    return event;
  }
  [[nodiscard]] double seconds(const Event& from, const Event& to) const {
    return 1e-3 * static_cast<double>(from->elapsed_time(*to));
  }
  [[nodiscard]] bool query(const Event& event) const { return event->query(); }
  void block_consumer(const Event& event) const { event->block(consumer()); }

  void record_stream(const Batch& batch) const {
    for (const NamedTensor& field : batch.fields) {
      c10::cuda::CUDACachingAllocator::recordStream(field.tensor.storage().data_ptr(), consumer());
    }
  }
  void synchronize() const { stream_.synchronize(); }
  [[nodiscard]] Event record_consumer() const {
    // Blocking, because a host that spins while it waits takes a core from the loader.
    auto event =
        std::make_shared<at::cuda::CUDAEvent>(cudaEventDisableTiming | cudaEventBlockingSync);
    event->record(consumer());
    return event;
  }
  void wait(const Event& event) const { event->synchronize(); }

 private:
  [[nodiscard]] c10::cuda::CUDAStream consumer() const {
    return c10::cuda::getCurrentCUDAStream(device_.index());
  }

  at::Tensor copy(const at::Tensor& host) {
    at::Tensor on_device = at::empty(host.sizes(), host.options().device(device_));
    C10_CUDA_CHECK(cudaMemcpyAsync(on_device.mutable_data_ptr(), host.const_data_ptr(),
                                   host.nbytes(), cudaMemcpyHostToDevice, stream_));
    return on_device;
  }

  /// Copies images to the device and returns them as [N, C, H, W]. If the pipeline sets their type,
  /// the values are those of the loader; otherwise, uint8 values are normalised to floats.
  at::Tensor copy_images(const at::Tensor& host, const ImageOutput& image) {
    const at::Tensor bytes = copy(host);
    if (image.pipeline.type) {
      return image.channels_first ? bytes : bytes.permute({0, 3, 1, 2});
    }
    at::Tensor images = at::empty(host.sizes(), at::device(device_).dtype(image_dtype_));
    const auto values = static_cast<std::size_t>(host.numel());
    normalize(bytes.const_data_ptr<std::uint8_t>(), values, constants_of(image.pipeline.normalize),
              output_type_, images.mutable_data_ptr(), stream_);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return as_nchw(images, image);
  }

  /// Makes normalised images from plans and from the stored pixels in the GPU's memory.
  at::Tensor make_images(const at::Tensor& host, std::size_t field, const ImageOutput& image) {
    const at::Tensor plans = copy(host);
    const int side = reinterpret_cast<const ImagePlan*>(host.const_data_ptr())->side;
    const at::Tensor images =
        at::empty({host.size(0), side, side, 3}, at::device(device_).dtype(image_dtype_));
    make_planned_images(images_->at(field).stored(),
                        {.plans = static_cast<const std::byte*>(plans.const_data_ptr()),
                         .plan_bytes = static_cast<std::size_t>(host.size(1)),
                         .count = static_cast<int>(host.size(0)),
                         .side = side},
                        constants_of(image.pipeline.normalize), output_type_,
                        images.mutable_data_ptr(), stream_);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return as_nchw(images, image);
  }

  /// Returns images that are [N, H, W, C] in memory as [N, C, H, W]: as a view or, if the pipeline
  /// sets the layout nchw, as a copy.
  static at::Tensor as_nchw(const at::Tensor& images, const ImageOutput& image) {
    const at::Tensor planes = images.permute({0, 3, 1, 2});
    return image.pipeline.channels_first ? planes.contiguous() : planes;
  }

  BatchFields fields_;
  std::shared_ptr<const StoredFields> images_;
  at::Device device_;
  at::ScalarType image_dtype_;
  PixelType output_type_;
  c10::cuda::CUDAStream stream_;
};

/// Loads batches into page-locked memory and copies them to the GPU before they are needed.
class CudaBatchSource final : public BatchSource {
 public:
  CudaBatchSource(const BetonReader& reader, const Pipeline& pipeline, const LoaderOptions& options,
                  const BatchFields& fields, at::Device device, at::ScalarType image_dtype,
                  SharedRing ring)
      : reader_(reader),
        device_(device),
        cancel_copy_(options.cancel_copy),
        planned_fields_(planned_fields(fields.outputs)),
        batches_(CudaCopier(fields, images_, device, image_dtype), kCopiedAhead, kMaxInUse, reader,
                 pipeline, with_pinned_memory(options), with_page_lock(std::move(ring))) {}

  /// The first call copies the stored images. The constructor does not do this, because the copy
  /// may take minutes, and a training run must lock its folder first. If the copy is cancelled, the
  /// pass has no batches.
  void begin_epoch(const EpochRequest& request) override {
    const DeviceImageOptions options{.cancel = cancel_copy_, .show_progress = request.rank == 0};
    for (const std::size_t field : planned_fields_) {
      const auto made = images_->try_emplace(field, reader_, field, device_, options).first;
      if (made->second.complete()) continue;
      images_->erase(made);
      return;
    }
    batches_.begin_epoch(request);
  }
  std::optional<Batch> next() override {
    if (images_->size() < planned_fields_.size()) return std::nullopt;
    return batches_.next();
  }

  [[nodiscard]] std::int64_t size(int world) const override {
    return loader().batches(world, /*rank=*/0);
  }
  [[nodiscard]] std::int64_t samples() const override { return loader().samples(); }
  [[nodiscard]] double seconds_waited() const override { return loader().seconds_waited(); }
  [[nodiscard]] SourceTimes times() const override {
    SourceTimes times = loader().times();
    times.copying = batches_.seconds_copying();
    return times;
  }
  [[nodiscard]] std::vector<ReplacedSample> replaced() const override {
    return loader().replaced();
  }

 private:
  static LoaderOptions with_pinned_memory(LoaderOptions options) {
    options.allocator = pinned_allocator();
    return options;
  }
  static SharedRing with_page_lock(SharedRing ring) {
    ring.options.on_mapped = page_lock;
    return ring;
  }
  [[nodiscard]] const SharedLoader& loader() const { return batches_.source(); }

  const BetonReader& reader_;
  at::Device device_;
  const std::atomic<bool>* cancel_copy_;
  std::set<std::size_t> planned_fields_;
  std::shared_ptr<CudaCopier::StoredFields> images_ = std::make_shared<CudaCopier::StoredFields>();
  DevicePrefetcher<CudaCopier, SharedLoader> batches_;
};

}  // namespace

std::unique_ptr<BatchSource> make_cuda_batch_source(const BetonReader& reader,
                                                    const Pipeline& pipeline,
                                                    const LoaderOptions& options,
                                                    BatchFields fields, at::Device device,
                                                    at::ScalarType image_dtype, SharedRing ring) {
  return std::make_unique<CudaBatchSource>(reader, pipeline, options, fields, device, image_dtype,
                                           std::move(ring));
}

}  // namespace precast::data
