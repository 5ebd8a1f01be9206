#include "tools/app/result_file.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <system_error>

#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "tools/app/torch_errors.h"
#include "tools/cli/command.h"

namespace precast::tools {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The error message and the exit code that the user sees.
Failure describe_torch_failure(const std::exception_ptr& exception) {
  try {
    rethrow_translated(exception);
  } catch (...) {
    return describe_failure(std::current_exception());
  }
}

}  // namespace

ResultFile::ResultFile(std::filesystem::path path)
    : path_(std::move(path)), start_(steady_seconds()) {
  if (path_.empty()) return;
  // Checks now whether the file can be written, not after days of training.
  static_cast<void>(AtomicFile(path_));
  std::error_code failure;
  // If the path is a link, removes its target and keeps the link, because AtomicFile does the same.
  const std::filesystem::path older = std::filesystem::canonical(path_, failure);
  if (failure) return;  // there is none
  if (!std::filesystem::remove(older, failure) && failure)
    throw IoError("cannot remove", older.string(), failure.value());
}

void ResultFile::add(const nlohmann::ordered_json& facts) {
  const std::scoped_lock lock(mutex_);
  facts_.update(facts);
}

void ResultFile::take_over() {
  if (path_.empty()) return;
  auto written = nlohmann::ordered_json::parse(std::ifstream(path_), nullptr,
                                               /*allow_exceptions=*/false);
  if (!written.is_object()) return;  // rank 0 was killed
  for (const char* own : {"exit_code", "seconds"}) written.erase(own);
  add(written);
}

void ResultFile::write_failure(int exit_code, const std::string& error) {
  try {
    write(exit_code, error);
  } catch (const std::exception& failure) {
    // The caller reports the first error, which is the cause.
    log_warning("{}", failure.what());
  }
}

int ResultFile::run_and_write(const std::function<int()>& body) {
  int code = 0;
  try {
    code = body();
  } catch (...) {
    const Failure failure = describe_torch_failure(std::current_exception());
    write_failure(failure.exit_code, failure.text);
    throw;
  }
  write(code, "");
  return code;
}

void ResultFile::write(int exit_code, const std::string& error) {
  using Json = nlohmann::ordered_json;
  if (path_.empty()) return;
  const std::scoped_lock lock(mutex_);
  Json document = {{"exit_code", exit_code}, {"seconds", steady_seconds() - start_}};
  if (!error.empty()) document["error"] = error;
  document.update(facts_);
  write_file(path_, dump_json(document, 2) + "\n");
}

std::string find_result_path(const std::vector<std::string>& args) {
  std::string path;
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const std::size_t end = std::min(args[i].find('='), args[i].size());
    std::string name = args[i].substr(0, end);
    std::ranges::replace(name, '_', '-');
    if (name != "--result-json") continue;
    if (end < args[i].size()) {
      path = args[i].substr(end + 1);
    } else if (i + 1 < args.size() && !args[i + 1].starts_with('-')) {
      path = args[i + 1];
    }
  }
  return path;
}

}  // namespace precast::tools
