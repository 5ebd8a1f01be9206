// A plug-in with an object that throws while the library is loaded.
#include <stdexcept>

#include "data/plugin.h"

namespace {

struct ThrowingGlobal {
  ThrowingGlobal() { throw std::runtime_error("no luck today"); }
};
const ThrowingGlobal throwing_global;

void add_parts(precast::data::DataParts& /*parts*/) {}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
