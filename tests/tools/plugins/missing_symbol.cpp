// A plug-in that calls a function that no library defines.
#include "data/plugin.h"

void function_of_no_library();

namespace {

void add_parts(precast::data::DataParts& /*parts*/) {
  function_of_no_library();
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
