#include "tools/plugins/plugin_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <span>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/plugin.h"
#include "precast_abi.h"
#include "tools/cli/command.h"

namespace precast::tools {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;
constexpr std::string_view kMagic = PRECAST_PLUGIN_MAGIC;

std::string read_plugin(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) {
    throw ConfigError(
        fmt::format("plug-in {}: expected a file, got none. Build it first. Paths in a recipe are "
                    "relative to its folder, paths on the command line to the current folder",
                    path.string()));
  }
  const std::vector<std::byte> bytes = read_file(path, kMaxBytes);
  std::string content(bytes.size(), '\0');
  std::ranges::transform(bytes, content.begin(), [](std::byte b) { return static_cast<char>(b); });
  if (!content.starts_with("\x7f"
                           "ELF")) {
    throw ConfigError(fmt::format(
        "plug-in {}: expected a shared library (.so), got another kind of file", path.string()));
  }
  return content;
}

std::string digest_of(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

/// The library being loaded, for the handler below.
std::string loading_path;

/// If the constructor of a global object throws, the loader ends the process. This handler prints a
/// message first.
[[noreturn]] void report_throwing_global() {
  const Failure failure = describe_failure(std::current_exception());
  fmt::print(stderr, "error: plug-in {}: one of its global objects threw: {}\n", loading_path,
             failure.text);
  std::_Exit(static_cast<int>(ExitCode::usage));
}

/// @return null if the loader rejects the library. A library is never closed, because its parts and
/// exceptions that it has thrown can exist until the process ends.
void* open_library(const std::filesystem::path& path) noexcept {
  loading_path = path.string();
  const std::terminate_handler before = std::set_terminate(report_throwing_global);
  // open_library() is noexcept, so an exception from a global object's constructor calls the
  // terminate handler. dlopen is declared not to throw, so for a direct call clang would omit the
  // code that enforces this.
  void* (*volatile load)(const char*, int) = ::dlopen;
  void* const library = load(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  std::set_terminate(before);
  return library;
}

}  // namespace

std::string plugin_digest(const std::filesystem::path& path) {
  return digest_of(read_file(path, kMaxBytes));
}

PluginFile::PluginFile(std::filesystem::path path)
    : path_(std::filesystem::absolute(path).lexically_normal()) {
  const std::string content = read_plugin(path_);
  digest_ = digest_of(std::as_bytes(std::span(content)));
  const std::size_t begin = content.find(kMagic);
  if (begin == std::string::npos) {
    throw ConfigError(fmt::format(
        "plug-in {}: expected PRECAST_TRAIN_PLUGIN or PRECAST_DATA_PLUGIN in one of its sources, "
        "got a library without the data that these macros add",
        path_.string()));
  }
  const std::size_t end = std::min(content.find('\0', begin), content.size());
  text_ = "interface " + content.substr(begin + kMagic.size(), end - begin - kMagic.size());
  expect("interface", "interface", PRECAST_PLUGIN_INTERFACE);
  expect("precast", "precast", PRECAST_ABI);
  expect("compiler", "compiler", PRECAST_TOOLCHAIN);
  const std::string kind = value("kind");
  if (kind != "train" && kind != "data")
    throw DeviceError(
        fmt::format("plug-in {}: expected the kind train or data, got '{}'", path_.string(), kind));
  kind_ = kind == "train" ? PluginKind::train : PluginKind::data;
}

std::string PluginFile::value(std::string_view key) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' '))
      return std::string(line.substr(key.size() + 1));
  }
  return "nothing";
}

void PluginFile::expect(std::string_view key, std::string_view what, std::string_view here) const {
  const std::string there = value(key);
  if (there == here) return;
  throw DeviceError(
      fmt::format("plug-in {}: expected {} '{}', which this program has, got '{}'. Rebuild it "
                  "against this precast: cmake -S . -B build -Dprecast_DIR=... && cmake --build "
                  "build; if precast's sources are newer than its build, build precast first",
                  path_.string(), what, here, there));
}

void PluginFile::expect_torch(std::string_view version) const {
  expect("torch", "libtorch", version);
}

void PluginFile::add_parts(void* parts) const {
  void* const library = open_library(path_);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    throw DeviceError(
        fmt::format("plug-in {}: cannot be loaded: {}. Link the libraries that it needs: "
                    "precast_add_plugin(... LINK ...)",
                    path_.string(), reason != nullptr ? reason : "no reason given"));
  }
  const void* const symbol = ::dlsym(library, "precast_plugin");
  if (symbol == nullptr)
    throw DeviceError(
        fmt::format("plug-in {}: expected the symbol precast_plugin, got none. Build it with "
                    "precast_add_plugin()",
                    path_.string()));
  const auto* const descriptor = static_cast<const PluginDescriptor*>(symbol);
  try {
    descriptor->add_parts(parts);
  } catch (const std::exception& error) {
    throw ConfigError(fmt::format("plug-in {}: its registration function threw an exception: {}",
                                  path_.string(), error.what()));
  } catch (...) {
    throw ConfigError(fmt::format(
        "plug-in {}: its registration function threw something that is not a std::exception",
        path_.string()));
  }
}

}  // namespace precast::tools
