#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/image/element_type.h"
#include "data/loader/host_batch.h"
#include "framework/core/export.h"

namespace precast::data {

/// The form that one output of a batch from outside must have.
struct FieldForm {
  std::string name;
  /// The accepted element types.
  std::vector<ElementType> types;
  /// The shape of one sample's value. -1: any size.
  std::vector<std::int64_t> shape;
};

/// Finds the output of a batch that has the name, type and shape of `form`, with `samples` samples.
/// @param batch for messages: `zmq://localhost:5555: message 3`. @throws ProducerError
[[nodiscard]] PRECAST_API const HostTensor& find_output(std::span<const HostTensor> outputs,
                                                        const FieldForm& form, std::int64_t samples,
                                                        std::string_view batch);

/// Checks that class indices are in [0, classes). @throws ProducerError naming the sample.
PRECAST_API void check_labels(std::span<const std::int64_t> labels, std::int64_t classes,
                              std::string_view name, std::string_view batch);

}  // namespace precast::data
