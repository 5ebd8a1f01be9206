#include "tools/plugins/new_plugin.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/arguments.h"
#include "tools/plugins/new_plugin_files.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

/// The differences between the kinds of plug-ins.
struct Kind {
  std::string_view name;
  /// Options of precast_add_plugin.
  std::string_view data;
  /// Lines of the recipe that use the part.
  std::string_view use;
};
constexpr Kind kKinds[] = {
    {"model", "", "model:\n  arch: @name@\n  params: {width: 32}\n"},
    {"method", "", "methods:\n  - @name@: {factor: 0.5}\n"},
    {"transform", " DATA",
     "pipeline:\n  train: [whole_image, @name@: {most: 32}]\n  val: [whole_image]\n"},
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// `my_net` -> `MyNet`.
std::string class_name(const std::string& name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c != '_')
      result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return result;
}

/// CMake's own targets, whose names no library can have.
constexpr std::string_view kReserved[] = {
    "all",     "clean",          "edit_cache", "help",          "install",
    "package", "package_source", "preinstall", "rebuild_cache", "test"};

void check_name(const std::string& name) {
  const bool plain = std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!plain || name.empty() || name[0] < 'a')
    throw ConfigError(
        fmt::format("new: expected a name of lower-case letters, digits and _, starting with a "
                    "letter, such as my_net, got '{}'",
                    name));
  if (std::ranges::find(kReserved, name) != std::end(kReserved))
    throw ConfigError(fmt::format(
        "new: expected a name that is not a target of CMake itself, got '{0}'. Try my_{0}", name));
}

/// The folder of precastConfig.cmake: the build folder, or a folder of precast's installation;
/// empty if there is none.
fs::path config_folder() {
  const fs::path root = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const char* subfolder :
       {".", "lib/cmake/precast", "lib64/cmake/precast", "lib/x86_64-linux-gnu/cmake/precast",
        "lib/aarch64-linux-gnu/cmake/precast"}) {
    if (fs::exists(root / subfolder / "precastConfig.cmake"))
      return (root / subfolder).lexically_normal();
  }
  return {};
}

}  // namespace

int run_new_plugin(const std::vector<std::string>& args) {
  Arguments arguments(
      "new plugin NAME [options]",
      "Creates a folder NAME with a plug-in that builds, a recipe that uses it, and "
      "a test that trains with it.");
  arguments.positional("NAME", "name of the folder and of the part, such as my_net");
  arguments.options().add_options()("kind", po::value<std::string>()->default_value("model"),
                                    "kind of the part; model, method or transform");
  arguments.example("precast new plugin my_net");
  arguments.example("precast new plugin my_blur --kind transform");
  if (!arguments.parse(args)) return 0;
  std::vector<std::string_view> kinds;
  for (const Kind& kind : kKinds) kinds.push_back(kind.name);
  const Kind& kind = kKinds[find_name("kind", kinds, arguments.text("kind"))];
  const std::string name = arguments.text("NAME");
  check_name(name);
  const fs::path folder = name;
  if (fs::exists(folder))
    throw ConfigError(
        fmt::format("new: expected the name of a new folder, got {}, which already exists", name));
  fs::create_directories(folder);
  for (const SkeletonFile& file : kSkeletonFiles) {
    const bool source = file.name.ends_with(".cpp");
    if (source && file.name != fmt::format("{}.cpp", kind.name)) continue;
    std::string text(file.text);
    replace_all(text, "@use@", kind.use);
    replace_all(text, "@data@", kind.data);
    replace_all(text, "@kind@", kind.name);
    replace_all(text, "@name@", name);
    replace_all(text, "@Class@", class_name(name));
    replace_all(text, "@config_folder@", config_folder().string());
    const fs::path path = folder / (source ? name + ".cpp" : std::string(file.name));
    write_file(path, text);
    if (file.name.ends_with(".sh"))
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add);
  }
  fmt::print(
      "{0}/: {0}.cpp, CMakeLists.txt, recipe.yaml, test.sh, README.md\n"
      "next: cd {0} && cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build && "
      "ctest --test-dir build --output-on-failure\n",
      name);
  return 0;
}

}  // namespace precast::tools
