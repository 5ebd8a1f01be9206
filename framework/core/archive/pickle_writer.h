#pragma once

#include <span>
#include <string>

#include "framework/core/archive/tensor_record.h"

namespace precast {

/// The contents of `data.pkl`, as torch.save writes it for an OrderedDict of tensors (pickle
/// protocol 2). The bytes of record i are in the storage `data/<i>`. Its only globals are
/// OrderedDict, _rebuild_tensor_v2 and storage types, so `torch.load(weights_only=True)` accepts
/// it.
[[nodiscard]] std::string pickle_state_dict(std::span<const TensorRecord> records);

}  // namespace precast
