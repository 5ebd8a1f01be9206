// Finds the fastest plan of a task, and checks the sums that its graph computes.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "gpu.h"
#include "task.h"

namespace cudnn_graphs {

struct Measured {
  double us;
  std::string plan;
  std::size_t plans_timed;
  /// The largest error of a channel's sum, relative to sqrt(n * sum of squares), and of a channel's
  /// sum of squares, relative to this sum. Absent if the graph computes no sums.
  std::optional<double> sum_error, squares_error;
  /// Whether the sums are wrong. A sum of n values with mean 0 is only about sqrt(n) times as large
  /// as one value, so a larger tolerance would accept a sum of 0. Rounding to half gives errors of
  /// about 1e-6.
  bool sums_differ() const {
    return !(sum_error.value_or(0) <= 1e-4) || !(squares_error.value_or(0) <= 1e-2);
  }
};

class Bench {
 public:
  Bench() : workspace_(kMaxWorkspaceBytes) {}

  /// Times the task's plans. @return the fastest one; nothing if no plan runs
  std::optional<Measured> measure(Task& task) {
    Tensors tensors;
    for (const Input& input : task.net->inputs()) {
      const Buffer& buffer = add(tensors, *input.tensor);
      if (input.tensor->get_data_type() == Type::FLOAT) {
        noise_.fill_floats(buffer, input.magnitude);
      } else {
        noise_.fill_halves(buffer, input.magnitude);
      }
    }
    for (const Tensor& output : task.net->outputs()) add(tensors, *output);
    const Plan* best = nullptr;
    double best_us = std::numeric_limits<double>::infinity();
    std::size_t timed = 0;
    for (const Plan& plan : task.plans) {
      if (!run(task, plan, tensors)) continue;
      ++timed;
      const double us = watch_.median_us(best_us, [&] {
        if (!run(task, plan, tensors)) throw std::runtime_error(plan.name + " failed");
      });
      if (us >= best_us) continue;
      best = &plan;
      best_us = us;
    }
    if (!best) return std::nullopt;
    Measured result{best_us, best->name, timed, {}, {}};
    if (task.net->sums().of) {
      run(task, *best, tensors);
      check_sums(task.net->sums(), tensors, result);
    }
    return result;
  }

  /// Measures the speed of a copy within the GPU's memory: bytes read plus bytes written, in GB/s.
  double copy_gb_per_s(std::size_t bytes) {
    const Buffer from(bytes), to(bytes);
    noise_.fill_halves(from, 1.0f);
    const double us = watch_.median_us(std::numeric_limits<double>::infinity(), [&] {
      check_cuda(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice),
                 "cannot copy");
    });
    return 2e-3 * static_cast<double>(bytes) / us;
  }

 private:
  /// The keys are the tensors' uids.
  struct Tensors {
    std::unordered_map<std::int64_t, Buffer> buffers;
    std::unordered_map<std::int64_t, void*> pointers;
  };

  static const Buffer& add(Tensors& tensors, const graph::Tensor_attributes& tensor) {
    std::size_t bytes = tensor.get_data_type() == Type::FLOAT ? 4 : 2;
    for (const std::int64_t size : tensor.get_dim()) bytes *= static_cast<std::size_t>(size);
    const Buffer& buffer = tensors.buffers.try_emplace(tensor.get_uid(), bytes).first->second;
    tensors.pointers[tensor.get_uid()] = buffer.data();
    return buffer;
  }

  /// Returns false if cuDNN reports an error, which becomes the task's refusal.
  bool run(Task& task, const Plan& plan, Tensors& tensors) {
    fe::error_t result =
        (**task.net)
            .execute_plan_at_index(task.handle, tensors.pointers, workspace_.data(), plan.index);
    if (result.is_bad()) task.refusal = plan.name + ": " + result.get_message();
    return result.is_good();
  }

  /// Compares the sums of the first channels with sums that the host computes.
  static void check_sums(const Sums& sums, const Tensors& tensors, Measured& result) {
    constexpr std::size_t kChannels = 4, kRow = kChannels * sizeof(_Float16);
    const auto dims = sums.of->get_dim();
    const auto rows = static_cast<std::size_t>(dims[0] * dims[2] * dims[3]);
    const Buffer packed(rows * kRow);
    check_cuda(cudaMemcpy2D(packed.data(), kRow, tensors.pointers.at(sums.of->get_uid()),
                            static_cast<std::size_t>(dims[1]) * sizeof(_Float16), kRow, rows,
                            cudaMemcpyDeviceToDevice),
               "cannot copy channels");
    std::vector<_Float16> values(rows * kChannels);
    check_cuda(cudaMemcpy(values.data(), packed.data(), packed.bytes(), cudaMemcpyDeviceToHost),
               "cannot copy channels");
    const std::vector<float> sum = first(tensors, sums.sum, kChannels);
    const std::vector<float> squares = first(tensors, sums.squares, kChannels);
    result.sum_error = 0;
    if (sums.squares) result.squares_error = 0;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      double expected = 0, expected_squares = 0;
      for (std::size_t i = channel; i < values.size(); i += kChannels) {
        const auto value = static_cast<double>(values[i]);
        expected += value;
        expected_squares += value * value;
      }
      const double scale = std::sqrt(static_cast<double>(rows) * expected_squares);
      raise(result.sum_error, std::abs(sum[channel] - expected) / scale);
      if (!sums.squares) continue;
      raise(result.squares_error, std::abs(squares[channel] - expected_squares) / expected_squares);
    }
  }

  /// Sets `most` to `error` if that is larger. NaN counts as the largest error.
  static void raise(std::optional<double>& most, double error) {
    if (!std::isnan(*most) && !(error <= *most)) most = error;
  }

  static std::vector<float> first(const Tensors& tensors, const Tensor& tensor, std::size_t count) {
    if (!tensor) return {};
    std::vector<float> values(count);
    check_cuda(cudaMemcpy(values.data(), tensors.pointers.at(tensor->get_uid()),
                          count * sizeof(float), cudaMemcpyDeviceToHost),
               "cannot copy sums");
    return values;
  }

  Buffer workspace_;
  Noise noise_;
  Stopwatch watch_;
};

}  // namespace cudnn_graphs
