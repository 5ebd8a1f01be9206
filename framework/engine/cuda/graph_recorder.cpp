#include "framework/engine/graph_recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "framework/core/log.h"

namespace precast::engine {
namespace {

/// Makes autocast cast weights at each use. Otherwise, the recording would read the cached result
/// of a cast in an earlier step.
class NoAutocastCache {
 public:
  NoAutocastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  NoAutocastCache(const NoAutocastCache&) = delete;
  NoAutocastCache& operator=(const NoAutocastCache&) = delete;
  ~NoAutocastCache() { at::autocast::set_autocast_cache_enabled(before_); }

 private:
  bool before_;
};

/// Makes work queued on `later` from now on wait for the work that is already queued on `earlier`.
void wait_for(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
  at::cuda::CUDAEvent done;
  done.record(earlier);
  done.block(later);
}

/// A capture on the current stream. The destructor undoes it, unless end() has succeeded.
///
/// CUDAGraph (libtorch 2.11) does not undo a failed capture: capture_begin() marks the default
/// generator as capturing and makes the allocators take this stream's memory from the graph's pool.
/// capture_end() reverts both, but only after cudaStreamEndCapture() has succeeded. Leaving the
/// pool in other cases requires its handle, so the handle is passed to the constructor.
class Capture {
 public:
  Capture(const c10::cuda::CUDAStream& stream, at::cuda::MempoolId_t pool)
      : stream_(stream),
        generator_(at::cuda::detail::getDefaultCUDAGenerator(stream.device_index())),
        generator_before_(generator_.clone()),
        pool_(pool),
        graph_(std::make_unique<at::cuda::CUDAGraph>()) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (graph_ != nullptr) undo();
  }

  /// In thread-local mode, the loader's threads and the copy stream can continue during the
  /// capture.
  void begin() { graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal); }
  [[nodiscard]] std::unique_ptr<at::cuda::CUDAGraph> end() {
    graph_->capture_end();
    return std::move(graph_);
  }

 private:
  void undo() noexcept {
    end_on_stream();
    try {
      // Only a new state object, with the same seed and offset, clears the mark of the capture.
      {
        const std::scoped_lock lock(generator_.mutex());
        generator_.graphsafe_set_state(generator_before_);
      }
      leave_pool();
    } catch (const std::exception& failure) {
      log_warning("training.cuda_graphs: cannot clean up after a failed recording: {}",
                  failure.what());
    }
  }

  void end_on_stream() const noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream_.stream(), &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone) {
      cudaGraph_t unused = nullptr;
      if (cudaStreamEndCapture(stream_.stream(), &unused) == cudaSuccess && unused != nullptr)
        static_cast<void>(cudaGraphDestroy(unused));
    }
    // Errors at this point only repeat the reason why the capture failed. Clears them, so that they
    // are not reported for the next kernel launch.
    static_cast<void>(cudaGetLastError());
  }

  void leave_pool() const {
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(stream_.device_index(), pool_);
    } catch (const c10::Error&) {
      // Either capture_begin() had not entered the pool yet, or capture_end() has already left it,
      // and the graph will release the pool.
      return;
    }
    c10::cuda::CUDACachingAllocator::releasePool(stream_.device_index(), pool_);
    at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
    host->end_allocate_to_pool(pool_);
    host->release_pool(pool_);
  }

  c10::cuda::CUDAStream stream_;
  at::Generator generator_, generator_before_;
  at::cuda::MempoolId_t pool_;
  /// Null once the capture has succeeded.
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

/// The memory pool of recordings that exist at the same time. The allocator deletes a pool when the
/// last graph that uses it is destroyed, and the id must not be used again. Therefore, the
/// recordings share ownership of this object.
struct Pool {
  at::cuda::MempoolId_t id;
};

class CudaRecording final : public GraphRecorder::Recording {
 public:
  CudaRecording(std::unique_ptr<at::cuda::CUDAGraph> graph, std::shared_ptr<const Pool> pool)
      : pool_(std::move(pool)), graph_(std::move(graph)) {}
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  ~CudaRecording() override {
    // An error can be ignored here, because the next CUDA call also returns it.
    static_cast<void>(cudaDeviceSynchronize());
  }

  void replay() override { graph_->replay(); }

 private:
  std::shared_ptr<const Pool> pool_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

class CudaGraphRecorder final : public GraphRecorder {
 public:
  explicit CudaGraphRecorder(at::Device device)
      : side_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())) {}

  void warm_up(const Work& work) override {
    const c10::cuda::CUDAStream current =
        c10::cuda::getCurrentCUDAStream(side_stream_.device_index());
    wait_for(side_stream_, current);
    {
      const c10::cuda::CUDAStreamGuard on_side_stream(side_stream_);
      const NoAutocastCache no_cache;
      work();
    }
    wait_for(current, side_stream_);
  }

  [[nodiscard]] std::unique_ptr<Recording> record(const Work& work) override {
    std::shared_ptr<const Pool> pool = pool_.lock();
    if (pool == nullptr) pool = std::make_shared<Pool>(Pool{at::cuda::graph_pool_handle()});
    // The recording allocates from a private pool, which cannot use memory that the allocator has
    // cached.
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const c10::cuda::CUDAStreamGuard on_side_stream(side_stream_);
    const NoAutocastCache no_cache;
    Capture capture(side_stream_, pool->id);
    capture.begin();
    work();
    auto recording = std::make_unique<CudaRecording>(capture.end(), pool);
    pool_ = pool;
    return recording;
  }

  void free_unused_memory() override { c10::cuda::CUDACachingAllocator::emptyCache(); }

 private:
  c10::cuda::CUDAStream side_stream_;
  /// Empty if nothing is recorded.
  std::weak_ptr<const Pool> pool_;
};

}  // namespace

std::unique_ptr<GraphRecorder> make_graph_recorder(at::Device device) {
  return std::make_unique<CudaGraphRecorder>(device);
}

}  // namespace precast::engine
