#include "framework/engine/step_graph.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <optional>
#include <utility>

#include "framework/core/log.h"

namespace precast::engine {
namespace {

/// Steps before the recording: libraries then have their workspaces, cuDNN its kernels, the model
/// its constants. The number that PyTorch's documentation of CUDA graphs asks for.
constexpr int kWarmUps = 3;

/// Casts weights anew at each use: a cached cast of an earlier step must not be recorded as input.
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

/// What is queued on `later` from now on waits for what is queued on `earlier` by now.
void wait_for(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
  at::cuda::CUDAEvent done;
  done.record(earlier);
  done.block(later);
}

class CudaStepGraph final : public StepGraph {
 public:
  CudaStepGraph(at::Device device, std::vector<at::Tensor> parameters)
      : parameters_(std::move(parameters)),
        side_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())) {}

  at::Tensor run(const at::Tensor& images, const at::Tensor& labels,
                 const Passes& passes) override {
    if (!fits(images_, images) || !fits(labels_, labels)) start_over(images, labels);
    {
      const at::NoGradGuard no_grad;
      images_.copy_(images, /*non_blocking=*/true);
      labels_.copy_(labels, /*non_blocking=*/true);
    }
    if (!graph_ && warm_ups_ < kWarmUps) {
      ++warm_ups_;
      return warm_up(passes);
    }
    if (!graph_) record(passes);
    graph_->replay();
    // A method may have put others in their place after the last step.
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i].mutable_grad() = gradients_[i];
    return loss_.clone();
  }

 private:
  static bool fits(const at::Tensor& place, const at::Tensor& value) {
    return place.defined() && place.sizes() == value.sizes() &&
           place.strides() == value.strides() && place.scalar_type() == value.scalar_type();
  }

  void start_over(const at::Tensor& images, const at::Tensor& labels) {
    // Replays may still be under way in the memory that is given back here.
    c10::cuda::device_synchronize();
    drop_gradients();
    gradients_.clear();
    loss_.reset();
    graph_.reset();
    warm_ups_ = 0;
    images_ = at::empty_like(images);
    labels_ = at::empty_like(labels);
  }

  at::Tensor warm_up(const Passes& passes) {
    const c10::cuda::CUDAStream current =
        c10::cuda::getCurrentCUDAStream(side_stream_.device_index());
    wait_for(side_stream_, current);
    at::Tensor loss;
    {
      const c10::cuda::CUDAStreamGuard on_side_stream(side_stream_);
      const NoAutocastCache no_cache;
      loss = passes(images_, labels_);
    }
    wait_for(current, side_stream_);
    return loss;
  }

  void record(const Passes& passes) {
    drop_gradients();
    // The recording allocates from a pool of its own, which cannot take what the allocator keeps.
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    {
      const c10::cuda::CUDAStreamGuard on_side_stream(side_stream_);
      const NoAutocastCache no_cache;
      // Thread-local: the loader's threads and the copy stream go on meanwhile.
      graph->capture_begin(/*pool=*/{0, 0}, cudaStreamCaptureModeThreadLocal);
      try {
        loss_ = passes(images_, labels_);
      } catch (...) {
        give_up(*graph);
        throw;
      }
      graph->capture_end();
    }
    for (const at::Tensor& parameter : parameters_) gradients_.push_back(parameter.grad());
    graph_ = std::move(graph);
  }

  /// Ends a recording whose passes failed: what they threw is what counts.
  static void give_up(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const std::exception& failure) {
      log_warning("training.cuda_graphs: the recording could not be ended: {}", failure.what());
    }
  }

  void drop_gradients() {
    for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }

  std::vector<at::Tensor> parameters_;
  c10::cuda::CUDAStream side_stream_;
  int warm_ups_ = 0;
  /// Where the recorded kernels read and write. They are declared before the graph, which goes
  /// first.
  at::Tensor images_, labels_, loss_;
  std::vector<at::Tensor> gradients_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace

std::unique_ptr<StepGraph> make_step_graph(at::Device device, std::vector<at::Tensor> parameters) {
  return std::make_unique<CudaStepGraph>(device, std::move(parameters));
}

}  // namespace precast::engine
