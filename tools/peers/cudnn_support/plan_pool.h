// Builds the execution plans of many graphs in threads. cuDNN allows this if no two threads use the
// same handle or graph at the same time, so each thread has its own handle.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "task.h"

namespace cudnn_graphs {

/// Starts building when it is constructed, in the order of kLayers and kPatterns.
class PlanPool {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit PlanPool(PoolOptions options) : options_(std::move(options)) {
    for (const Layer& layer : kLayers) {
      for (const Pattern& pattern : kPatterns) {
        if (layer.inner > 0 || !pattern.inner_only) tasks_.emplace_back(layer, pattern);
      }
    }
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~PlanPool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      paused_ = false;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    tasks_.clear();  // plans must not outlive their handles
    for (const cudnnHandle_t handle : handles_) cudnnDestroy(handle);
  }
  PlanPool(const PlanPool&) = delete;
  PlanPool& operator=(const PlanPool&) = delete;

  bool ready(const Layer& layer) {
    const std::lock_guard lock(mutex_);
    return all_done(layer);
  }
  /// Waits for the layer's tasks. Returns false if they are not done by `deadline`.
  bool wait(const Layer& layer, Time deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return all_done(layer) || !error_.empty(); });
    if (!error_.empty()) throw std::runtime_error(error_);
    return all_done(layer);
  }
  /// The layer's tasks, which must be done.
  std::vector<Task*> tasks(const Layer& layer) {
    std::vector<Task*> of;
    for (Task& task : tasks_) {
      if (task.layer == &layer) of.push_back(&task);
    }
    return of;
  }
  /// Pauses building, and returns once no thread is building; resume() continues. Loading the code
  /// of a new plan could delay the kernels that are being timed.
  void pause() {
    std::unique_lock lock(mutex_);
    paused_ = true;
    changed_.wait(lock, [this] { return building_ == 0; });
  }
  void resume() {
    {
      const std::lock_guard lock(mutex_);
      paused_ = false;
    }
    changed_.notify_all();
  }

 private:
  bool all_done(const Layer& layer) const {
    return std::all_of(tasks_.begin(), tasks_.end(),
                       [&](const Task& task) { return task.layer != &layer || task.done; });
  }

  void work() {
    cudnnHandle_t handle = nullptr;
    if (!options_.device &&
        (cudaSetDevice(0) != cudaSuccess || cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS)) {
      const std::lock_guard lock(mutex_);
      error_ = std::string("cuDNN cannot use the GPU: ") + cudaGetErrorString(cudaGetLastError());
      changed_.notify_all();
      return;
    }
    std::unique_lock lock(mutex_);
    if (handle) handles_.push_back(handle);
    while (!stopping_ && next_ < tasks_.size()) {
      Task& task = tasks_[next_++];
      lock.unlock();
      task.handle = handle;
      try {
        build(task);
      } catch (const std::exception& error) {
        task.plans.clear();
        task.refusal = error.what();
      }
      lock.lock();
      task.done = true;
      changed_.notify_all();
    }
  }

  void build(Task& task) {
    const Type intermediate = task.pattern->intermediate_is_float ? Type::FLOAT : Type::HALF;
    task.net = std::make_unique<Net>(options_.device, options_.batch, Type::HALF, intermediate);
    graph::Graph& of = **task.net;
    task.pattern->build(*task.net, task.layer->shape);
    step([&] { task.refusal = refusal(of, task.handle); });
    if (!task.refusal.empty()) return;
    of.deselect_workspace_greater_than(kMaxWorkspaceBytes);
    std::set<std::string> tried;
    task.engines = of.get_execution_plan_count();
    for (std::int64_t i = 0; i < task.engines && task.plans.size() < options_.plans; ++i) {
      std::string name;
      check(of.get_plan_name_at_index(i, name), "cannot read the name of a plan");
      if (!tried.insert(name).second) continue;
      fe::error_t built;
      if (!step([&] { built = of.build_plan_at_index(i); })) break;
      if (built.is_good() && of.get_workspace_size_plan_at_index(i) <= kMaxWorkspaceBytes) {
        task.plans.push_back({i, name});
      } else {
        task.refusal = built.get_message();
      }
    }
    if (!task.plans.empty()) task.refusal.clear();
  }

  /// Waits until the pool is not paused, and runs a part of a task. Returns false without running
  /// it if the pool is stopping.
  template <typename Part>
  bool step(const Part& part) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !paused_ || stopping_; });
    if (stopping_) return false;
    ++building_;
    lock.unlock();
    struct Leave {
      PlanPool& pool;
      ~Leave() {
        {
          const std::lock_guard lock(pool.mutex_);
          --pool.building_;
        }
        pool.changed_.notify_all();
      }
    } const leave{*this};
    part();
    return true;
  }

  const PoolOptions options_;
  std::vector<Task> tasks_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::vector<cudnnHandle_t> handles_;
  std::size_t next_ = 0;
  int building_ = 0;
  bool paused_ = false, stopping_ = false;
  std::string error_;
};

}  // namespace cudnn_graphs
