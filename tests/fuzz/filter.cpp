#include "data/order/filter.h"

#include <memory>

#include "data/beton/reader.h"
#include "data/write/writer.h"
#include "framework/core/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using namespace precast::data;

/// 16 samples; sample i has label i and weight i.
const BetonReader& samples() {
  static const MemoryFile file = [] {
    MemoryFile made;
    BetonWriter writer(MemoryFile::kPath,
                       {{"label", FieldType::integer}, {"weight", FieldType::floating}}, 16, {},
                       made);
    for (int i = 0; i < 16; ++i) {
      std::vector<EncodedValue> values(2);
      for (EncodedValue& value : values) value.metadata.resize(8);
      store(values[0].metadata.data(), std::int64_t{i});
      store(values[1].metadata.data(), double{static_cast<double>(i)});
      writer.add(values);
    }
    writer.finish();
    return made;
  }();
  static const BetonReader reader(file.bytes(), "samples");
  return reader;
}

}  // namespace

void filter(Input input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  const auto chosen = SampleFilter(text).select(samples(), 0, samples().size());
  const auto others = SampleFilter("not (" + text + ")").select(samples(), 0, samples().size());
  require(chosen.size() + others.size() == samples().size(),
          "a sample matches either an expression or its negation");
}

}  // namespace precast::fuzz
