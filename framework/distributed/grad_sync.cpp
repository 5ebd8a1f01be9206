#include "framework/distributed/grad_sync.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "framework/core/error.h"
#include "framework/distributed/c10d_parts.h"
#include "framework/distributed/flat_tensors.h"

namespace precast::distributed {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The first version of NCCL whose collectives CUDA graphs can record.
constexpr int kRecordableNccl = 20906;

Tensors tensors_of(const std::vector<NamedTensor>& parameters) {
  Tensors tensors;
  for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

/// Lists the first 8 names and the number of remaining ones. @param names not empty.
std::string join_names(std::vector<std::string> names) {
  constexpr std::size_t kMaxNames = 8;
  if (names.size() > kMaxNames) {
    const std::size_t more = names.size() - kMaxNames;
    names.resize(kMaxNames);
    names.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// @throws Error naming the parameters that require a gradient but have none. With such parameters,
/// the ranks would average different gradients.
void check_gradients(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : parameters)
    if (tensor.requires_grad() && !tensor.grad().defined()) missing.push_back(name);
  if (missing.empty()) return;
  throw Error(fmt::format(
      "model: expected each step of a run with several ranks to use all trained parameters, got no "
      "gradient for {}. Multiply an output by 0 instead of leaving it out, or do not train these "
      "parameters (training.freeze)",
      join_names(std::move(missing))));
}

at::ScalarType half_type(GradCompression compression) {
  return compression == GradCompression::bf16 ? at::kBFloat16 : at::kHalf;
}

/// Returns the gradients of a bucket, divided by the number of ranks, in the type in which they are
/// sent. The division comes before the sum, so that sums over many ranks stay in range. Without
/// compression, divides `bucket` in place and returns it.
at::Tensor make_message(const at::Tensor& bucket, GradCompression compression, int world) {
  const at::Tensor message =
      compression == GradCompression::none ? bucket : bucket.to(half_type(compression));
  return message.div_(world);
}

using HookBase = c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

/// Sums a bucket in half precision.
class CompressHook final : public HookBase {
 public:
  CompressHook(const c10::intrusive_ptr<c10d::ProcessGroup>& group, GradCompression compression)
      : HookBase(group), compression_(compression) {}

  FuturePtr runHook(c10d::GradBucket& bucket) override {
    at::Tensor buffer = bucket.getBufferRef();
    Tensors half = {make_message(buffer, compression_, state_->getSize())};
    auto sum = state_->allreduce(half)->getFuture();
    return sum->then(
        [buffer, half](c10::ivalue::Future& /*future*/) {
          at::Tensor back = buffer;
          back.copy_(half[0]);
          return c10::IValue(back);
        },
        c10::TensorType::get());
  }

 private:
  GradCompression compression_;
};

/// Sums a bucket of a GPU's gradients over Gloo. Waits for the sum, because in some versions of
/// PyTorch its future does not record the stream that copies the result back from the host.
/// Gradients could then be read too early (pytorch/pytorch#170812).
class BlockingHook final : public HookBase {
 public:
  BlockingHook(const c10::intrusive_ptr<c10d::ProcessGroup>& group, GradCompression compression)
      : HookBase(group), compression_(compression) {}

  FuturePtr runHook(c10d::GradBucket& bucket) override {
    at::Tensor buffer = bucket.getBufferRef();
    Tensors message = {make_message(buffer, compression_, state_->getSize())};
    state_->allreduce(message)->wait();
    buffer.copy_(message[0]);
    auto done = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
    done->markCompleted(c10::IValue(buffer));
    return done;
  }

 private:
  GradCompression compression_;
};

std::string obstacle_of(ProcessGroup& group, VariableUpdate update) {
  const GroupOptions& options = group.parts().options;
  return graph_obstacle(update, options.device, options.transport);
}

/// The hook that sums buckets; null if the Reducer's own sum is used.
std::unique_ptr<c10d::CommHookInterface> make_hook(const ProcessGroup::Parts& parts,
                                                   GradCompression compression) {
  if (parts.gloo_on_gpu()) return std::make_unique<BlockingHook>(parts.data, compression);
  if (compression == GradCompression::none) return nullptr;
  return std::make_unique<CompressHook>(parts.data, compression);
}

/// Uses c10d::Reducer, with which PyTorch's DistributedDataParallel sends gradients. Only this
/// class calls the Reducer's constructor, which new releases of PyTorch may change.
class OverlappedSync final : public GradSync {
 public:
  OverlappedSync(ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                 const GradSyncOptions& options)
      : group_(group), parameters_(parameters), before_(parameters.size()) {
    // The backward pass computes gradients from the last parameter to the first, so buckets are
    // filled in this order.
    Tensors backwards = tensors_of(parameters);
    std::ranges::reverse(backwards);
    const std::vector<bool> sparse(backwards.size(), false);
    const auto first = static_cast<std::int64_t>(options.first_bucket_bytes);
    const auto rest = static_cast<std::int64_t>(options.bucket_bytes);
    auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
        backwards, {options.first_bucket_bytes, options.bucket_bytes}, sparse));
    reducer_ = std::make_unique<c10d::Reducer>(
        backwards, std::move(buckets), group.parts().data, sparse, rest,
        /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
        std::unordered_map<std::size_t, std::string>{}, first,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<std::int64_t>{});
    if (auto hook = make_hook(group.parts(), options.compression))
      reducer_->register_comm_hook(std::move(hook));
    // By default the Reducer rearranges its buckets after the first step, so a resumed run would
    // add gradients in a different order from the original run. These two calls make the current
    // order final.
    reducer_->push_rebuilt_params_for_all_indices();
    reducer_->rebuild_buckets();
  }

  void begin_backward(bool last) override {
    if (!last) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i) before_[i] = gradient_of(i);
    reducer_->prepare_for_backward({});
  }
  void check_backward() override {
    check_gradients(parameters_);
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (gradient_of(i) == nullptr || gradient_of(i) == before_[i])
        missing.push_back(parameters_[i].name);
    }
    if (missing.empty()) return;
    throw Error(fmt::format(
        "dist.variable_update: replicated: expected the last backward pass of each step to compute "
        "the gradients of all trained parameters, got none for {}. Set dist.variable_update: "
        "allreduce_after_backward",
        join_names(std::move(missing))));
  }
  /// The Reducer has sent all buckets during the backward pass.
  void finish_backward() override {}
  void finish_step() override {}
  [[nodiscard]] std::string graph_obstacle() const override {
    return obstacle_of(group_, VariableUpdate::replicated);
  }

 private:
  /// Returns the address of a parameter's gradient, which identifies it; null if there is no
  /// gradient.
  [[nodiscard]] const void* gradient_of(std::size_t parameter) const {
    const at::Tensor& gradient = parameters_[parameter].tensor.grad();
    return gradient.defined() ? gradient.unsafeGetTensorImpl() : nullptr;
  }

  ProcessGroup& group_;
  std::vector<NamedTensor> parameters_;
  /// The results of gradient_of() before the last backward pass; null unless there were earlier
  /// micro-batches. If the last pass computes a gradient, the Reducer replaces the tensor by a view
  /// of its bucket, so the address changes.
  std::vector<const void*> before_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

Tensors gradients_of(const std::vector<NamedTensor>& parameters) {
  Tensors gradients;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.grad().defined()) gradients.push_back(tensor.grad());
  }
  return gradients;
}

class AfterBackwardSync final : public GradSync {
 public:
  AfterBackwardSync(ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                    const GradSyncOptions& options)
      : group_(group), parameters_(parameters), compression_(options.compression) {}

  void begin_backward(bool /*last*/) override {}
  void check_backward() override { check_gradients(parameters_); }
  void finish_backward() override {
    const at::NoGradGuard no_grad;
    FlatTensors gradients(gradients_of(parameters_));
    if (!gradients.flat().defined()) return;
    at::Tensor sum = gradients.flat().div_(group_.world());
    if (compression_ != GradCompression::none) sum = sum.to(half_type(compression_));
    group_.all_reduce_sum({sum});
    if (compression_ != GradCompression::none) gradients.flat().copy_(sum);
    gradients.copy_back();
  }
  void finish_step() override {}
  [[nodiscard]] std::string graph_obstacle() const override {
    return obstacle_of(group_, VariableUpdate::allreduce_after_backward);
  }

 private:
  ProcessGroup& group_;
  std::vector<NamedTensor> parameters_;
  GradCompression compression_;
};

class ParameterServerSync final : public GradSync {
 public:
  ParameterServerSync(ProcessGroup& group, const std::vector<NamedTensor>& parameters)
      : group_(group), parameters_(parameters) {}

  void begin_backward(bool /*last*/) override {}
  void check_backward() override { check_gradients(parameters_); }
  void finish_backward() override {
    const at::NoGradGuard no_grad;
    FlatTensors gradients(gradients_of(parameters_));
    if (!gradients.flat().defined()) return;
    gradients.flat().div_(group_.world());
    group_.reduce_sum({gradients.flat()}, kServer);
    if (group_.rank() == kServer) gradients.copy_back();
  }
  void finish_step() override {
    const at::NoGradGuard no_grad;
    group_.broadcast(tensors_of(parameters_), kServer);
  }
  [[nodiscard]] bool gradients_everywhere() const override { return false; }
  [[nodiscard]] std::string graph_obstacle() const override {
    return obstacle_of(group_, VariableUpdate::parameter_server);
  }

 private:
  static constexpr int kServer = 0;
  ProcessGroup& group_;
  std::vector<NamedTensor> parameters_;
};

/// ZeRO stage 1: after the update, each rank broadcasts the parameters that it owns.
class ShardedSync final : public GradSync {
 public:
  ShardedSync(ProcessGroup& group, const std::vector<NamedTensor>& parameters,
              const std::vector<int>& owners, std::unique_ptr<GradSync> gradients)
      : group_(group),
        inner_(std::move(gradients)),
        owned_(static_cast<std::size_t>(group.world())) {
    require(owners.size() == parameters.size(), "every parameter has an owner");
    for (std::size_t i = 0; i < owners.size(); ++i)
      owned_.at(static_cast<std::size_t>(owners[i])).push_back(parameters[i].tensor);
  }

  void begin_backward(bool last) override { inner_->begin_backward(last); }
  void check_backward() override { inner_->check_backward(); }
  void finish_backward() override { inner_->finish_backward(); }
  void finish_step() override {
    const at::NoGradGuard no_grad;
    for (std::size_t owner = 0; owner < owned_.size(); ++owner)
      group_.broadcast(owned_[owner], static_cast<int>(owner));
  }
  [[nodiscard]] std::string graph_obstacle() const override { return inner_->graph_obstacle(); }

 private:
  ProcessGroup& group_;
  std::unique_ptr<GradSync> inner_;
  /// For each rank, the parameters that it updates.
  std::vector<Tensors> owned_;
};

}  // namespace

std::string graph_obstacle(VariableUpdate update, at::Device device, Transport transport) {
  if (!device.is_cuda() || transport == Transport::gloo)
    return "Gloo exchanges the gradients through the memory of the CPU";
  const int version = nccl_version();
  if (version == 0) return "this build has no NCCL";
  if (version < kRecordableNccl) {
    return fmt::format("NCCL version {} is older than {} (2.9.6), the first that can be recorded",
                       version, kRecordableNccl);
  }
  switch (update) {
    case VariableUpdate::replicated:
      return "dist.variable_update: replicated sends gradients from hooks of the backward pass "
             "(allreduce_after_backward can be recorded)";
    case VariableUpdate::parameter_server:
      return "dist.variable_update: parameter_server gives the ranks different work";
    case VariableUpdate::allreduce_after_backward:
      break;
  }
  return "";
}

std::unique_ptr<GradSync> make_grad_sync(ProcessGroup& group,
                                         const std::vector<NamedTensor>& parameters,
                                         const GradSyncOptions& options) {
  std::unique_ptr<GradSync> sync;
  switch (options.update) {
    case VariableUpdate::replicated:
      sync = std::make_unique<OverlappedSync>(group, parameters, options);
      break;
    case VariableUpdate::allreduce_after_backward:
      sync = std::make_unique<AfterBackwardSync>(group, parameters, options);
      break;
    case VariableUpdate::parameter_server:
      return std::make_unique<ParameterServerSync>(group, parameters);
  }
  if (options.owners.empty()) return sync;
  return std::make_unique<ShardedSync>(group, parameters, options.owners, std::move(sync));
}

std::vector<int> shard_parameters(const std::vector<NamedTensor>& parameters, int world) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return parameters[i].tensor.numel(); });
  std::vector<std::int64_t> elements(static_cast<std::size_t>(world), 0);
  std::vector<int> owners(parameters.size(), 0);
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(elements);
    *least += parameters[i].tensor.numel();
    owners[i] = static_cast<int>(least - elements.begin());
  }
  return owners;
}

}  // namespace precast::distributed
