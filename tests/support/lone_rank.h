#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/api/single_rank.h"

namespace precast::test {

/// Acts as one of `world` ranks, but the other ranks do not exist: sums and broadcasts change
/// nothing, and all_gather() returns only this rank's text.
class LoneRank : public Communicator {
 public:
  explicit LoneRank(int rank = 0, int world = 1) : rank_(rank), world_(world) {}
  [[nodiscard]] int rank() const final { return rank_; }
  [[nodiscard]] int world() const final { return world_; }
  void all_reduce_sum(std::vector<at::Tensor> /*tensors*/) override {}
  void reduce_sum(std::vector<at::Tensor> /*tensors*/, int /*root*/) override {}
  void broadcast(std::vector<at::Tensor> /*tensors*/, int /*root*/) override {}
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) override {
    return {text};
  }
  [[nodiscard]] std::unique_ptr<PendingSum> begin_sum(std::int64_t value) override {
    return make_single_rank()->begin_sum(value);
  }

 private:
  int rank_;
  int world_;
};

}  // namespace precast::test
