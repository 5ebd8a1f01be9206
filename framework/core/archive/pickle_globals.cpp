#include "framework/core/archive/pickle_globals.h"

#include <array>

namespace precast {
namespace {

using Role = PickleValue::Role;

struct Entry {
  std::string_view module;
  std::string_view name;
  Role role;
};

/// Globals marked `opaque` are never called: a pickle's call of one yields a placeholder. They are
/// listed because training checkpoints contain them in addition to the weights. Pickles of protocol
/// 2 use the names of Python 2, such as `__builtin__`.
constexpr std::array kGlobals = {
    Entry{"collections", "OrderedDict", Role::make_dict},
    Entry{"collections", "defaultdict", Role::make_dict},
    Entry{"torch", "Size", Role::return_first_argument},
    Entry{"torch._utils", "_rebuild_tensor_v2", Role::make_tensor},
    Entry{"torch._utils", "_rebuild_parameter", Role::return_first_argument},
    Entry{"torch._utils", "_rebuild_parameter_with_state", Role::return_first_argument},
    Entry{"torch", "device", Role::opaque},
    Entry{"torch", "float64", Role::opaque},
    Entry{"torch", "float32", Role::opaque},
    Entry{"torch", "float16", Role::opaque},
    Entry{"torch", "bfloat16", Role::opaque},
    Entry{"torch", "int64", Role::opaque},
    Entry{"torch.torch_version", "TorchVersion", Role::opaque},
    Entry{"argparse", "Namespace", Role::opaque},
    Entry{"pathlib", "Path", Role::opaque},
    Entry{"pathlib", "PosixPath", Role::opaque},
    Entry{"numpy", "dtype", Role::opaque},
    Entry{"numpy.core.multiarray", "scalar", Role::opaque},
    Entry{"numpy._core.multiarray", "scalar", Role::opaque},
    Entry{"_codecs", "encode", Role::opaque},
    Entry{"__builtin__", "set", Role::opaque},
    Entry{"builtins", "set", Role::opaque},
    Entry{"__builtin__", "list", Role::opaque},
    Entry{"builtins", "list", Role::opaque},
    Entry{"__builtin__", "dict", Role::opaque},
    Entry{"builtins", "dict", Role::opaque},
    Entry{"__builtin__", "int", Role::opaque},
    Entry{"builtins", "int", Role::opaque},
    Entry{"__builtin__", "float", Role::opaque},
    Entry{"builtins", "float", Role::opaque},
};

}  // namespace

std::optional<PickleGlobal> find_pickle_global(std::string_view module, std::string_view name) {
  if (module == "torch") {
    if (const auto dtype = find_dtype(&DTypeInfo::torch_storage, name)) {
      return PickleGlobal{Role::storage_type, *dtype};
    }
  }
  for (const Entry& entry : kGlobals) {
    if (entry.module == module && entry.name == name) return PickleGlobal{entry.role};
  }
  return std::nullopt;
}

}  // namespace precast
