#include "tests/support/text_file.h"

#include <fstream>
#include <iterator>

namespace precast::test {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace precast::test
