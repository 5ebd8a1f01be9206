// A plug-in with an object that throws while the library is loaded.
#include <stdexcept>

#include "data/plugin.h"

namespace {

struct Unlucky {
  Unlucky() { throw std::runtime_error("no luck today"); }
};
const Unlucky unlucky;

void add_parts(precast::data::DataParts& /*parts*/) {}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
