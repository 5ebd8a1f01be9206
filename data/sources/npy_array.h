#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/fields/sample.h"

namespace precast::data {

/// The array of a .npy file as an ndarray field takes it; a single number as one of shape [1].
/// @param place names it in messages. @throws DataError
[[nodiscard]] ArrayInput npy_array(std::span<const std::byte> file, const std::string& place);

}  // namespace precast::data
