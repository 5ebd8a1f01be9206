#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"

namespace precast {

/// One value of a pickle. Containers point to values of the same Pickle. Several containers may
/// share a value, and a malicious file may even contain cycles: limit the depth when you traverse
/// it.
struct PRECAST_API PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    storage,
    tensor,
    /// A class or function on the allow list.
    global,
    /// A placeholder for a value that is harmless and not needed: a numpy scalar, an
    /// argparse.Namespace ...
    opaque,
  };
  /// The effect of calling a global on the allow list.
  enum class Role { none, make_dict, make_tensor, return_first_argument, storage_type, opaque };

  /// A storage: the bytes of the zip entry `data/<key>`.
  struct Storage {
    DType dtype;
    std::string_view key;
    std::uint64_t elements;
  };
  /// A view of a storage. Shape, strides and offset are in elements, as read from the file; the
  /// caller must check that they fit the storage.
  struct Tensor {
    Storage storage;
    std::int64_t offset;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
  };

  Kind kind = Kind::none;
  Role role = Role::none;
  DType dtype = DType::f32;  // set only for Role::storage_type
  std::int64_t integer = 0;
  std::string_view text;  // a view of the pickle's bytes
  /// Items of a tuple or list; keys and values of a dict, alternating.
  std::vector<PickleValue*> items;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Tensor> tensor;

  /// The last value of a dict under the string key `key`, or null.
  [[nodiscard]] const PickleValue* find(std::string_view key) const;
};

/// A pickle's values. They are valid as long as this object and the bytes from which it was read
/// exist.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* top = nullptr;
};

/// Reads the pickle (protocols 2 to 5) inside a file written by torch.save. Executes no code from
/// the file: only opcodes and globals on an allow list are accepted. A call of an allowed global
/// returns a dict, a tensor description or its first argument; all other results are `opaque`
/// placeholders. The stack, the memo and the number of values have limits, and numbers are checked.
/// @param source names the file in messages. @throws CheckpointError
[[nodiscard]] PRECAST_API Pickle parse_pickle(std::span<const std::byte> bytes,
                                              const std::string& source);

}  // namespace precast
