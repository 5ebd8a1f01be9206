#include "framework/distributed/process_group.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "framework/core/error.h"
#include "framework/distributed/c10d_parts.h"
#include "framework/distributed/flat_tensors.h"
#include "framework/distributed/rendezvous.h"

namespace precast::distributed {
namespace {

constexpr std::size_t kBroadcastBucketBytes = 25 << 20;

/// Runs a collective; converts the transport's exceptions to Error.
template <typename Call>
auto collective(const char* what, Call call) {
  try {
    return call();
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::Error& error) {
    throw Error(fmt::format("ranks: expected {} over all ranks, got: {}", what,
                            error.what_without_backtrace()),
                ExitCode::peer_failed);
  } catch (const std::exception& error) {
    throw Error(fmt::format("ranks: expected {} over all ranks, got: {}", what, error.what()),
                ExitCode::peer_failed);
  }
}

bool is_this_host(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

/// Returns the network interface that Gloo uses: the one named by GLOO_SOCKET_IFNAME if that is
/// set; otherwise the loopback if the store is on this host's loopback; otherwise the interface to
/// which this host's name resolves.
std::shared_ptr<::gloo::transport::Device> gloo_device(const GroupOptions& options) {
  using c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr)
    return ProcessGroupGloo::createDeviceForInterface(interface);
  if (is_this_host(options.host)) return ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return ProcessGroupGloo::createDefaultDevice();
}

c10::intrusive_ptr<c10d::ProcessGroup> make_group(const GroupOptions& options,
                                                  const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::ProcessGroup>(store, options.rank, options.world);
}

void add_gloo(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store,
              const GroupOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(gloo_device(options));
  const auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank,
                                                                   options.world, std::move(gloo));
  group.setBackend(at::kCPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  group.setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  if (options.device.is_cuda())
    group.setBackend(at::kCUDA, c10d::ProcessGroup::BackendType::GLOO, backend);
}

class GlooSum final : public Communicator::PendingSum {
 public:
  GlooSum(c10d::ProcessGroup& group, std::int64_t value) : value_(at::full({1}, value, at::kLong)) {
    std::vector<at::Tensor> tensors = {value_};
    work_ = collective("a sum", [&] { return group.allreduce(tensors); });
  }
  [[nodiscard]] std::int64_t wait() override {
    collective("a sum", [&] { work_->wait(); });
    return value_.item<std::int64_t>();
  }

 private:
  at::Tensor value_;
  c10::intrusive_ptr<c10d::Work> work_;
};

}  // namespace

ProcessGroup::ProcessGroup(const GroupOptions& options) : parts_(std::make_unique<Parts>()) {
  parts_->options = options;
  parts_->store = rendezvous(parts_->options);
  try {
    const auto control_store = c10::make_intrusive<c10d::PrefixStore>("control", parts_->store);
    parts_->control = make_group(options, control_store);
    add_gloo(*parts_->control, control_store, options);
    parts_->data = parts_->control;
    if (options.device.is_cuda() && options.transport == Transport::by_device) {
      const auto data_store = c10::make_intrusive<c10d::PrefixStore>("data", parts_->store);
      parts_->data = make_group(options, data_store);
      add_nccl(*parts_->data, data_store, options);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw connection_error(options, error);
  }
}

ProcessGroup::~ProcessGroup() {
  try {
    if (parts_->data != parts_->control) parts_->data->getDefaultBackend()->shutdown();
  } catch (const std::exception&) {
    // The run is over; a peer may have exited first.
  }
}

const GroupOptions& ProcessGroup::options() const {
  return parts_->options;
}

int ProcessGroup::rank() const {
  return parts_->options.rank;
}

int ProcessGroup::world() const {
  return parts_->options.world;
}

void ProcessGroup::all_reduce_sum(std::vector<at::Tensor> tensors) {
  collective("a sum", [&] {
    for (at::Tensor& tensor : tensors) {
      std::vector<at::Tensor> one = {tensor};
      parts_->data->allreduce(one)->wait();
    }
  });
}

void ProcessGroup::reduce_sum(std::vector<at::Tensor> tensors, int root) {
  c10d::ReduceOptions options;
  options.rootRank = root;
  collective("a sum", [&] {
    for (at::Tensor& tensor : tensors) {
      std::vector<at::Tensor> one = {tensor};
      parts_->data->reduce(one, options)->wait();
    }
  });
}

void ProcessGroup::broadcast(std::vector<at::Tensor> tensors, int root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  collective("a broadcast", [&] {
    for (const auto& group : group_tensors(tensors, kBroadcastBucketBytes)) {
      FlatTensors flat(group);
      std::vector<at::Tensor> one = {flat.flat()};
      parts_->data->broadcast(one, options)->wait();
      if (rank() != root) flat.copy_back();
    }
  });
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& text) {
  // The strings may differ in length, so the ranks first exchange the lengths, and then the
  // strings, padded to the longest length.
  return collective("an exchange of strings", [&] {
    const auto gather = [&](at::Tensor mine) {
      std::vector<std::vector<at::Tensor>> all(1);
      for (int r = 0; r < world(); ++r) all[0].push_back(at::empty_like(mine));
      std::vector<at::Tensor> input = {std::move(mine)};
      parts_->control->allgather(all, input)->wait();
      return all[0];
    };
    std::vector<std::int64_t> sizes;
    for (const at::Tensor& size :
         gather(at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong)))
      sizes.push_back(size.item<std::int64_t>());
    at::Tensor padded =
        at::zeros({std::max<std::int64_t>(1, *std::ranges::max_element(sizes))}, at::kByte);
    std::memcpy(padded.mutable_data_ptr(), text.data(), text.size());
    std::vector<std::string> texts;
    for (const at::Tensor& bytes : gather(padded)) {
      texts.emplace_back(static_cast<const char*>(bytes.const_data_ptr()),
                         static_cast<std::size_t>(sizes[texts.size()]));
    }
    return texts;
  });
}

std::unique_ptr<Communicator::PendingSum> ProcessGroup::begin_sum(std::int64_t value) {
  return std::make_unique<GlooSum>(*parts_->control, value);
}

}  // namespace precast::distributed
