#include "framework/api/single_rank.h"

namespace precast {
namespace {

class KnownSum final : public Communicator::PendingSum {
 public:
  explicit KnownSum(std::int64_t value) : value_(value) {}
  [[nodiscard]] std::int64_t wait() override { return value_; }

 private:
  std::int64_t value_;
};

class SingleRank final : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world() const override { return 1; }
  void all_reduce_sum(std::vector<at::Tensor> /*tensors*/) override {}
  void reduce_sum(std::vector<at::Tensor> /*tensors*/, int /*root*/) override {}
  void broadcast(std::vector<at::Tensor> /*tensors*/, int /*root*/) override {}
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) override {
    return {text};
  }
  [[nodiscard]] std::unique_ptr<PendingSum> begin_sum(std::int64_t value) override {
    return std::make_unique<KnownSum>(value);
  }
};

class NoGradSync final : public GradSync {
 public:
  void begin_backward(bool /*last*/) override {}
  void finish_backward() override {}
  void finish_step() override {}
  [[nodiscard]] std::string graph_obstacle() const override { return ""; }
};

}  // namespace

std::unique_ptr<Communicator> make_single_rank() {
  return std::make_unique<SingleRank>();
}

std::unique_ptr<GradSync> make_single_rank_sync() {
  return std::make_unique<NoGradSync>();
}

}  // namespace precast
