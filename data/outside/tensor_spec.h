#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/image/element_type.h"
#include "data/loader/host_batch.h"
#include "framework/core/export.h"

namespace precast::data {

/// The form that one output of a producer's batch must have.
struct TensorSpec {
  std::string name;
  /// The accepted element types.
  std::vector<ElementType> types;
  /// The shape of one sample's value; -1 means any size.
  std::vector<std::int64_t> shape;
};

/// Finds the output of a batch that has the name, type and shape of `spec`, with `samples` samples.
/// @param batch the batch's name for messages, such as `zmq://localhost:5555: message 3`. @throws
/// ProducerError
[[nodiscard]] PRECAST_API const HostTensor& find_output(std::span<const HostTensor> outputs,
                                                        const TensorSpec& spec,
                                                        std::int64_t samples,
                                                        std::string_view batch);

/// The classes of a target.
struct ClassRange {
  /// The classes are 0 to count - 1.
  std::int64_t count = 0;
  /// Another valid value, for pixels that the loss ignores.
  std::optional<std::int64_t> ignored = {};
};

/// Checks that each value of an output is a class or the ignored value. The output contains labels
/// or masks of an integer type; its data must be aligned, and must not change during the check.
/// @throws ProducerError naming the sample.
PRECAST_API void check_classes(const HostTensor& output, const ClassRange& classes,
                               std::string_view batch);

}  // namespace precast::data
