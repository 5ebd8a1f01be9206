#include "tests/support/thread_ranks.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>

#include <barrier>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace precast::test {
namespace {

struct Meeting {
  explicit Meeting(int world)
      : all(world),
        brought(static_cast<std::size_t>(world)),
        texts(static_cast<std::size_t>(world)) {}
  std::barrier<> all;
  /// The tensors of each rank.
  std::vector<std::vector<at::Tensor>> brought;
  std::vector<std::string> texts;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world() const override { return static_cast<int>(meeting_.brought.size()); }
  void all_reduce_sum(std::vector<at::Tensor> tensors) override {
    const at::NoGradGuard no_grad;
    meeting_.brought[static_cast<std::size_t>(rank_)] = tensors;
    meeting_.all.arrive_and_wait();
    for (const auto& others : meeting_.brought) {
      if (others.size() != tensors.size()) throw std::runtime_error("another rank has ended");
    }
    std::vector<at::Tensor> sums;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      sums.push_back(meeting_.brought[0][i].clone());
      for (std::size_t r = 1; r < meeting_.brought.size(); ++r)
        sums.back().add_(meeting_.brought[r][i]);
    }
    meeting_.all.arrive_and_wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(sums[i]);
  }
  void reduce_sum(std::vector<at::Tensor> /*tensors*/, int /*root*/) override { refuse(); }
  void broadcast(std::vector<at::Tensor> /*tensors*/, int /*root*/) override { refuse(); }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) override {
    meeting_.texts[static_cast<std::size_t>(rank_)] = text;
    meeting_.all.arrive_and_wait();
    std::vector<std::string> texts = meeting_.texts;
    meeting_.all.arrive_and_wait();
    return texts;
  }
  [[nodiscard]] std::unique_ptr<PendingSum> begin_sum(std::int64_t /*value*/) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw std::logic_error("ranks that are threads support only sums and all_gather()");
  }
  Meeting& meeting_;
  int rank_;
};

}  // namespace

void run_as_ranks(int world, const std::function<void(Communicator&)>& rank) {
  Meeting meeting(world);
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < world; ++r) {
      threads.emplace_back([&, r] {
        c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
        ThreadRank communicator(meeting, r);
        try {
          rank(communicator);
        } catch (...) {
          const std::scoped_lock lock(mutex);
          if (!first) first = std::current_exception();
        }
        // The other ranks must not wait for a rank that has ended.
        meeting.brought[static_cast<std::size_t>(r)].clear();
        meeting.all.arrive_and_drop();
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace precast::test
