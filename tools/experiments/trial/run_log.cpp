#include "tools/experiments/trial/run_log.h"

#include <system_error>

namespace precast::tools {

bool RunLog::refresh() {
  std::error_code missing;
  const std::uint64_t size = std::filesystem::file_size(path_, missing);
  if (missing || size == offset_) return false;
  std::ifstream file(path_);
  if (!file) return false;  // such as with too many open files; the epochs read so far stay valid
  // Even a log that was truncated may since have grown past its earlier size.
  if (size < offset_ || !is_unchanged(file)) {
    offset_ = 0;
    last_line_.clear();
    epochs_.clear();
    last_step_ = nullptr;
  }
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset_));
  bool any = false;
  // An incomplete last line is read once it is complete.
  for (std::string line; std::getline(file, line) && !file.eof();) {
    offset_ += line.size() + 1;
    read_line(line);
    last_line_ = line;
    any = true;
  }
  return any;
}

bool RunLog::is_unchanged(std::ifstream& file) const {
  if (offset_ == 0) return true;
  std::string bytes(last_line_.size() + 1, ' ');
  file.seekg(static_cast<std::streamoff>(offset_ - bytes.size()));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file && bytes == last_line_ + '\n';
}

void RunLog::read_line(const std::string& line) {
  auto record = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("epoch")) return;
  if (record.contains("step")) {
    last_step_ = std::move(record);
  } else {
    const auto epoch = record.at("epoch").get<std::int64_t>();
    epochs_.insert_or_assign(epoch, std::move(record));
  }
}

}  // namespace precast::tools
