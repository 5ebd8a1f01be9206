#include "framework/core/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/utf8.h"

namespace precast {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRedrawEvery = std::chrono::milliseconds(100);
constexpr auto kPlainLineEvery = std::chrono::seconds(5);
constexpr std::string_view kBetweenParts = " | ";

std::size_t columns_of(const std::vector<LinePart>& parts) {
  std::size_t columns = parts.empty() ? 0 : kBetweenParts.size() * (parts.size() - 1);
  for (const LinePart& part : parts) columns += count_characters(part.text);
  return columns;
}

std::string joined(const std::vector<LinePart>& parts) {
  std::string line;
  for (const LinePart& part : parts) {
    if (!line.empty()) line += kBetweenParts;
    line += part.text;
  }
  return line;
}

}  // namespace

std::string_view fit_text(std::string_view text, std::size_t columns) {
  std::size_t shown = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (continues_character(text[i])) continue;
    if (shown == columns) return text.substr(0, i);
    ++shown;
  }
  return text;
}

std::string fit_parts(std::vector<LinePart> parts, std::size_t columns) {
  while (parts.size() > 1 && columns_of(parts) > columns)
    parts.erase(std::ranges::min_element(parts, {}, &LinePart::importance));
  return std::string(fit_text(joined(parts), columns));
}

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

Progress::Progress()
    : terminal_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()), next_(start_) {
  if (!terminal_) next_ += kPlainLineEvery;
}

Progress::~Progress() {
  clear();
}

bool Progress::due() const {
  return Clock::now() >= next_;
}

void Progress::show(std::string_view text) {
  next_ = Clock::now();
  if (terminal_) {
    next_ += kRedrawEvery;
    // Leaves the last column free, because some terminals wrap a line that fills it.
    write_stderr(fmt::format("\r\033[K{}", fit_text(text, terminal_size().columns - 1)));
    drawn_ = true;
  } else {
    next_ += kPlainLineEvery;
    write_stderr(fmt::format("{}\n", text));
  }
}

void Progress::show(std::vector<LinePart> parts) {
  show(terminal_ ? fit_parts(std::move(parts), terminal_size().columns - 1) : joined(parts));
}

std::string Progress::rate(std::uint64_t done, std::uint64_t total) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double each_second = static_cast<double>(done) / seconds;
  return fmt::format("{:.0f} samples/s, {} left", each_second,
                     format_duration(static_cast<double>(total - done) / each_second));
}

void Progress::clear() {
  if (!drawn_) return;
  write_stderr("\r\033[K");
  drawn_ = false;
}

}  // namespace precast
