#include "tools/report/class_accuracies.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

std::string class_text(std::size_t index, const ordered_json& names) {
  const std::string number = std::to_string(index);
  if (index >= names.size() || !names[index].is_string()) return number;
  const auto name = names[index].get<std::string>();
  return name.empty() || name == number ? number : number + " " + name;
}

}  // namespace

std::vector<ClassAccuracy> class_accuracies(const RunRecord& run) {
  const ordered_json classes = run.summary.value("classes", ordered_json::object());
  const auto list = [&](const char* key) {
    const auto found = classes.find(key);
    return found != classes.end() && found->is_array() ? *found : ordered_json::array();
  };
  const ordered_json names = list("names"), images = list("images"),
                     correct = list("top_1_correct");
  std::vector<ClassAccuracy> rows;
  if (images.size() != correct.size()) return rows;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!images[i].is_number_integer() || !correct[i].is_number_integer()) continue;
    ClassAccuracy row{class_text(i, names), images[i].get<std::int64_t>(),
                      correct[i].get<std::int64_t>()};
    if (row.images > 0) rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, {}, &ClassAccuracy::accuracy);
  return rows;
}

}  // namespace precast::tools
