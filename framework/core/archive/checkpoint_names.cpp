#include "framework/core/archive/checkpoint_names.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <random>
#include <string_view>

#include "framework/core/parse_number.h"
#include "framework/core/system.h"

namespace precast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ckpt-";
constexpr std::string_view kTemporary = ".tmp.";
constexpr std::chrono::hours kMaxAge{24};

/// The name of this host, with all characters other than letters, digits, '-' and '.' replaced by
/// '-'.
const std::string& plain_host_name() {
  static const std::string name = [] {
    std::string text = host_name().value_or("unknown");
    for (char& c : text) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == '.';
      if (!plain) c = '-';
    }
    return text.empty() ? "unknown" : text;
  }();
  return name;
}

/// Distinguishes this process from an earlier process with the same id; in containers, process ids
/// repeat.
const std::string& process_token() {
  static const std::string token = [] {
    std::random_device source;
    return fmt::format("{:08x}{:08x}", source(), source());
  }();
  return token;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:010}", kPrefix, step);
}

std::optional<std::int64_t> checkpoint_step(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = parse_number<std::int64_t>(std::string_view(name).substr(kPrefix.size()));
  return step && name == checkpoint_name(*step) ? step : std::nullopt;
}

fs::path temporary_path(const fs::path& checkpoint) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}{}{}.{}.{}-{}", checkpoint.string(), kTemporary, plain_host_name(),
                     ::getpid(), process_token(), count++);
}

bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t mark = name.find(kTemporary);
  return mark != std::string::npos && checkpoint_step(name.substr(0, mark));
}

bool is_stale_temporary(const fs::path& path) {
  if (!is_temporary(path)) return false;
  const std::string name = path.filename().string();
  const std::size_t mark = name.find(kTemporary);
  std::error_code failure;
  const fs::file_time_type changed = fs::last_write_time(path, failure);
  if (!failure && fs::file_time_type::clock::now() - changed > kMaxAge) return true;

  // Searches from the end, because the host's name may contain dots; process id and token do not.
  const std::string_view writer = std::string_view(name).substr(mark + kTemporary.size());
  const std::size_t token_dot = writer.rfind('.');
  if (token_dot == std::string_view::npos || token_dot == 0) return false;
  const std::size_t process_dot = writer.rfind('.', token_dot - 1);
  if (process_dot == std::string_view::npos) return false;
  const auto process =
      parse_number<pid_t>(writer.substr(process_dot + 1, token_dot - process_dot - 1));
  if (writer.substr(0, process_dot) != plain_host_name() || !process || *process <= 0) return false;
  if (*process == ::getpid()) {
    return !writer.substr(token_dot + 1).starts_with(process_token() + "-");
  }
  return ::kill(*process, 0) != 0 && errno == ESRCH;
}

}  // namespace precast
