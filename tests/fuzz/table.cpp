#include "data/sources/table.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

/// A file in memory, as a list wants one with an ending.
class ScratchFile {
 public:
  ScratchFile(Input bytes, const char* ending)
      : path_(std::filesystem::path("/dev/shm") /
              ("precast-fuzz-" + std::to_string(::getpid()) + ending)) {
    write_file(path_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

void table(Input input) {
  if (input.empty()) return;
  constexpr const char* kEndings[] = {".csv", ".tsv", ".jsonl"};
  const ScratchFile file(input.subspan(1), kEndings[std::to_integer<unsigned>(input[0]) % 3]);
  const auto source = data::open_table(file.path());
  require(source->size() > 0, "a list has samples");
  for (std::uint64_t i = 0; i < source->size(); ++i) {
    const data::Sample sample = source->sample(i);
    require(sample.values.size() == source->fields().size(), "a sample has a value a field");
  }
}

}  // namespace precast::fuzz
