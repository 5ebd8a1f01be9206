#include "framework/core/archive/weight_names.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "framework/core/error.h"

namespace precast {
namespace {

constexpr std::string_view kFilter = ".blur_filter";

}  // namespace

TorchvisionNames torchvision_names(const std::vector<TensorRecord>& records,
                                   const std::string& source) {
  std::set<std::string, std::less<>> wrappers;
  TorchvisionNames result;
  for (const TensorRecord& record : records) {
    if (!record.name.ends_with(kFilter)) continue;
    wrappers.insert(record.name.substr(0, record.name.size() - kFilter.size()));
    result.left_out.push_back(record.name);
  }
  std::set<std::string> names;
  for (TensorRecord record : records) {
    if (record.name.ends_with(kFilter)) continue;
    for (const std::string_view wrapped : {".conv.weight", ".conv.bias"}) {
      if (!record.name.ends_with(wrapped)) continue;
      const std::string wrapper = record.name.substr(0, record.name.size() - wrapped.size());
      if (!wrappers.contains(wrapper)) continue;
      record.name = wrapper + std::string(wrapped.substr(wrapped.rfind('.')));
      ++result.renamed;
      break;
    }
    if (!names.insert(record.name).second) {
      throw CheckpointError(fmt::format("{}: tensor '{}' is there twice, with and without '.conv'",
                                        source, record.name));
    }
    result.records.push_back(std::move(record));
  }
  return result;
}

}  // namespace precast
