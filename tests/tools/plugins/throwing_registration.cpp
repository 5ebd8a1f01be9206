// A plug-in that fails while it registers its parts.
#include <stdexcept>

#include "data/plugin.h"

namespace {

void add_parts(precast::data::DataParts& /*parts*/) {
  throw std::runtime_error("not today");
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
