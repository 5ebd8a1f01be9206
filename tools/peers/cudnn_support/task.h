// A graph that PlanPool builds plans for, and that is then measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "resnet50.h"

namespace cudnn_graphs {

constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{1} << 30;

struct Plan {
  std::int64_t index;
  std::string name;
};

/// One pattern of one layer. Once it is done, only the caller of PlanPool uses it.
struct Task {
  Task(const Layer& of, const Pattern& built) : layer(&of), pattern(&built) {}

  const Layer* layer;
  const Pattern* pattern;
  std::unique_ptr<Net> net;
  /// The handle that the graph is built with; null without a GPU.
  cudnnHandle_t handle = nullptr;
  /// How many engine configurations cuDNN suggests.
  std::int64_t engines = 0;
  std::vector<Plan> plans;
  /// Why there are no plans, or why one does not run.
  std::string refusal;
  bool done = false;
};

struct PoolOptions {
  /// A description instead of a GPU, or null.
  Device device;
  std::int64_t batch = 256;
  /// The maximum number of plans per graph.
  std::size_t plans = 8;
};

}  // namespace cudnn_graphs
