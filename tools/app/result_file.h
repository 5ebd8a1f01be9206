#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace precast::tools {

/// Writes FILE of `--result-json FILE` atomically, for the program that started this one:
/// `{"exit_code", "seconds", ...}`, after a failure also "error". If FILE is a symbolic link, its
/// target is written. The constructor removes an older file. A file that is missing after the end
/// of the process therefore means that the process was killed or could not write it. add() and
/// write_failure() are thread-safe.
class ResultFile {
 public:
  /// @param path empty: nothing is written.
  /// @throws IoError if the file cannot be written (the path is a device or a folder, or its folder
  /// is missing), or if an older file cannot be removed.
  explicit ResultFile(std::filesystem::path path);

  /// Adds facts to the file's contents.
  void add(const nlohmann::ordered_json& facts);
  /// Adds the facts that rank 0, which this process has started, has written to the file.
  void take_over();
  /// Writes the result of a process that is about to end without returning to run_and_write(). If
  /// the file cannot be written, that is only a warning.
  void write_failure(int exit_code, const std::string& error);
  /// Runs `body`, then writes its result. Rethrows what `body` throws; if the file cannot be
  /// written either, that is only a warning. @throws IoError if the file cannot be written after
  /// `body` has returned.
  int run_and_write(const std::function<int()>& body);

 private:
  void write(int exit_code, const std::string& error);

  std::filesystem::path path_;
  /// Protects facts_ and the file: a thread may end the process while another one adds facts.
  std::mutex mutex_;
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
  double start_;
};

/// The value of `--result-json` in arguments that may be invalid; empty if there is none.
[[nodiscard]] std::string find_result_path(const std::vector<std::string>& args);

}  // namespace precast::tools
