#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace precast::tools {

/// Writes `--result-json FILE` for the program that started this one, atomically: `{"exit_code",
/// "error", "seconds", ...}`. An older file is removed at the start. A missing file therefore means
/// that the process was killed. Not thread-safe.
class ResultFile {
 public:
  /// @param path empty: nothing is written. @throws IoError if an old file cannot be removed, or
  /// its folder does not exist.
  explicit ResultFile(std::filesystem::path path);

  /// Adds facts to the file's contents.
  void add(const nlohmann::ordered_json& facts) { facts_.update(facts); }
  /// Whether any process has written the file since this process started.
  [[nodiscard]] bool is_there() const { return std::filesystem::exists(path_); }
  /// Call if another process writes the file (rank 0, or the ranks of a launcher).
  void leave_to_others() { path_.clear(); }
  /// Runs `body`, then writes its result. Rethrows what `body` throws; if the file cannot be
  /// written either, that is only a warning. @throws IoError if the file cannot be written after
  /// `body` has returned.
  int write_after(const std::function<int()>& body);

 private:
  void write(int exit_code, const std::string& error);

  std::filesystem::path path_;
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
  double start_;
};

}  // namespace precast::tools
