#include "framework/core/appended_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/log.h"

namespace precast {

AppendedFile::AppendedFile(std::filesystem::path path, FileOps& ops)
    : path_(std::move(path)), ops_(ops), fd_(ops.open_append(path_.c_str())) {
  if (fd_ < 0) throw IoError("cannot open", path_.string(), errno);
  written_ = static_cast<std::int64_t>(std::filesystem::file_size(path_));
}

AppendedFile::~AppendedFile() {
  ops_.close(fd_);
}

void AppendedFile::append(std::string_view piece) {
  if (!piece.empty()) unwritten_.emplace_back(piece);
  try {
    failpoint("log.before_line");
    write_out();
  } catch (const IoError& error) {
    if (!warned_)
      log_warning(
          "{}. Training continues. The lines stay in memory and are written with a later line or "
          "at the end of the run, if the disk allows it",
          error.what());
    warned_ = true;
  }
}

void AppendedFile::flush() {
  try {
    write_out();
  } catch (const IoError& error) {
    log_warning("{}. {} record{} not in the file", error.what(), unwritten_.size(),
                unwritten_.size() == 1 ? " is" : "s are");
  }
}

void AppendedFile::write_out() {
  while (!unwritten_.empty()) {
    std::string& piece = unwritten_.front();
    const std::ptrdiff_t written = ops_.write(fd_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw IoError("cannot write", path_.string(), written < 0 ? errno : ENOSPC);
    piece.erase(0, static_cast<std::size_t>(written));
    if (piece.empty()) unwritten_.pop_front();
    written_ += written;
  }
}

std::int64_t AppendedFile::position() const {
  std::int64_t bytes = written_;
  for (const std::string& piece : unwritten_) bytes += static_cast<std::int64_t>(piece.size());
  return bytes;
}

void AppendedFile::truncate(std::int64_t position) {
  std::int64_t excess = this->position() - position;
  while (excess > 0 && !unwritten_.empty()) {
    std::string& last = unwritten_.back();
    const auto bytes = std::min(excess, static_cast<std::int64_t>(last.size()));
    last.resize(last.size() - static_cast<std::size_t>(bytes));
    if (last.empty()) unwritten_.pop_back();
    excess -= bytes;
  }
  if (position >= written_) return;
  if (ops_.ftruncate(fd_, position) != 0) throw IoError("cannot truncate", path_.string(), errno);
  written_ = position;
}

}  // namespace precast
