#include "tests/support/paths.h"

#include <cstdlib>

namespace precast::test {

std::string source_dir() {
  return PRECAST_SOURCE_DIR;
}

std::string build_dir() {
  return PRECAST_BUILD_DIR;
}

std::string bin_dir() {
  return build_dir() + "/bin";
}

std::string golden_dir() {
  const char* const elsewhere = std::getenv("PRECAST_GOLDEN_DIR");
  return elsewhere != nullptr ? elsewhere : source_dir() + "/tests/golden";
}

std::string test_plugin_dir() {
  return build_dir() + "/tests/tools/plugins";
}

}  // namespace precast::test
