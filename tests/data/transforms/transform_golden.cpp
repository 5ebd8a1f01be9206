#include "tests/data/transforms/transform_golden.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "framework/core/archive/npy.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

const std::string kFolder = test::golden_dir() + "/transforms/";

}  // namespace

nlohmann::json transform_golden_facts() {
  return nlohmann::json::parse(std::ifstream(kFolder + "cases.json"));
}

Golden transform_golden(const std::string& name) {
  const nlohmann::json facts = transform_golden_facts();
  Golden golden;
  if (facts["cases"].contains(name)) golden.cases = facts["cases"][name];
  const NpyArray array = read_npy(kFolder + name + ".npy");
  const auto count = static_cast<std::size_t>(array.shape.size() == 4 ? array.shape[0] : 1);
  const std::size_t bytes = array.bytes.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::uint8_t> image(bytes);
    std::memcpy(image.data(), array.bytes.data() + i * bytes, bytes);
    golden.images.push_back(std::move(image));
  }
  return golden;
}

PixelBuffer golden_image() {
  static const auto values = transform_golden("picture").images.at(0);
  return {.values = values, .shape = {37, 45, 3}};
}

Difference difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  if (a.size() != b.size()) return {256, 1};
  Difference found;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    found.worst = std::max(found.worst, std::abs(int{a[i]} - int{b[i]}));
    count += a[i] != b[i] ? 1 : 0;
  }
  found.share = static_cast<double>(count) / static_cast<double>(a.size());
  return found;
}

}  // namespace precast::test
