#include "framework/core/archive/checkpoint_names.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <random>
#include <string_view>

namespace precast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ckpt-";
constexpr std::string_view kTemporary = ".tmp.";
constexpr std::chrono::hours kMaxAge{24};

/// Parses `text` as a number; nothing may follow it.
template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The name of this host, with all characters other than letters, digits, '-' and '.' replaced by
/// '-'.
const std::string& host_name() {
  static const std::string name = [] {
    std::array<char, HOST_NAME_MAX + 1> buffer{};
    if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return std::string("unknown");
    std::string text = buffer.data();
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
  const auto step = whole_number<std::int64_t>(std::string_view(name).substr(kPrefix.size()));
  return step && name == checkpoint_name(*step) ? step : std::nullopt;
}

fs::path temporary_path(const fs::path& checkpoint) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}{}{}.{}.{}-{}", checkpoint.string(), kTemporary, host_name(), ::getpid(),
                     process_token(), count++);
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

  // The host's name may contain dots; the parts after it do not.
  const std::string_view writer = std::string_view(name).substr(mark + kTemporary.size());
  const std::size_t token_dot = writer.rfind('.');
  if (token_dot == std::string_view::npos || token_dot == 0) return false;
  const std::size_t process_dot = writer.rfind('.', token_dot - 1);
  if (process_dot == std::string_view::npos) return false;
  const auto process =
      whole_number<pid_t>(writer.substr(process_dot + 1, token_dot - process_dot - 1));
  if (writer.substr(0, process_dot) != host_name() || !process || *process <= 0) return false;
  if (*process == ::getpid()) {
    return !writer.substr(token_dot + 1).starts_with(process_token() + "-");
  }
  return ::kill(*process, 0) != 0 && errno == ESRCH;
}

}  // namespace precast
