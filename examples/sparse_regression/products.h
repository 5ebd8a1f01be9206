#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace sparse_regression {

/// The contribution of a batch to a gradient.
struct Products {
  /// X v - offset, float32 [batch].
  at::Tensor residuals;
  /// X' (X v - offset), float64 [features].
  at::Tensor gradient;
};

/// Computes products with the rows of a batch. On a CPU, rows are converted to float32 one block at
/// a time, and both products of a block are computed while it is in the core's cache. So the batch
/// is read from memory only once, in its stored type. Sums have the same order for any number of
/// threads. Not thread-safe.
class BatchProducts {
 public:
  /// @param threads number of threads that compute on a CPU. ATen itself must be set to one thread.
  BatchProducts(std::int64_t features, at::Device device, int threads);

  /// @param rows   float16 or float32 [batch, features]; @param v float32 [features];
  /// @param offset float32 [batch]
  [[nodiscard]] Products multiply(const at::Tensor& rows, const at::Tensor& v,
                                  const at::Tensor& offset);

  /// Calls `add` for each block of rows, with the index of its first row and the sums to which the
  /// block must be added, float32 [count, features]. @return the totals, float64 [count, features].
  using AddBlock =
      std::function<void(const at::Tensor& block, std::int64_t first, at::Tensor& sums)>;
  [[nodiscard]] at::Tensor sum_blocks(const at::Tensor& rows, std::int64_t count,
                                      const AddBlock& add);

  /// Memory that an object uses for its sums and blocks, in bytes.
  [[nodiscard]] static std::uint64_t memory_bytes(std::int64_t features);

 private:
  [[nodiscard]] std::int64_t block_rows() const;

  std::int64_t features_;
  at::Device device_;
  int threads_;
  /// For each part of a batch, memory for a block of rows as float32.
  std::vector<at::Tensor> scratch_;
};

/// Adds all values in the same order for any number of threads. Returns a float64 scalar.
[[nodiscard]] at::Tensor ordered_sum(const at::Tensor& values);

}  // namespace sparse_regression
