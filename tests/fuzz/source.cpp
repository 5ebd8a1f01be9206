#include "data/sources/source.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "data/sources/register.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

namespace fs = std::filesystem;

/// A dataset of one file, or of two files that belong together.
struct Form {
  const char* kind;
  const char* name;
  const char* beside = nullptr;
};
constexpr std::array<Form, 8> kForms = {{{"table", "x.csv"},
                                         {"table", "x.tsv"},
                                         {"table", "x.jsonl"},
                                         {"numpy", "x.npz"},
                                         {"numpy", "x.npy", "y.npy"},
                                         {"idx", "images-idx3", "labels-idx1"},
                                         {"cifar", "data_batch_1.bin"},
                                         {"webdataset", "x.tar"}}};

/// A folder in memory, because sources are opened by file name.
class ScratchFolder {
 public:
  ScratchFolder() : path_(fs::path("/dev/shm") / ("precast-fuzz-" + std::to_string(::getpid()))) {
    fs::create_directory(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { fs::remove_all(path_); }
  fs::path put(const char* name, Input bytes) const {
    write_file(path_ / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return path_ / name;
  }

 private:
  fs::path path_;
};

struct Touch {
  void operator()(std::int64_t /*number*/) const {}
  void operator()(double /*number*/) const {}
  void operator()(const std::string& text) const { touch(std::as_bytes(std::span(text))); }
  void operator()(const std::vector<std::byte>& bytes) const { touch(bytes); }
  void operator()(const data::ImageInput& image) const {
    touch(image.file);
    touch(std::as_bytes(std::span(image.pixels.pixels)));
  }
  void operator()(const data::ArrayInput& array) const { touch(array.elements); }
  void operator()(const data::CustomInput& custom) const { touch(custom.metadata); }
};

}  // namespace

void source(Input input) {
  // The first byte selects the form; the next two are the size of the first file.
  constexpr std::size_t kPrefix = 3;
  if (input.size() < kPrefix) return;
  const Form& form = kForms[std::to_integer<std::size_t>(input[0]) % kForms.size()];
  const std::size_t first =
      std::to_integer<std::size_t>(input[1]) | std::to_integer<std::size_t>(input[2]) << 8;
  input = input.subspan(kPrefix);
  const ScratchFolder folder;
  const fs::path path = folder.put(form.name, input.first(std::min(first, input.size())));
  if (form.beside != nullptr)
    (void)folder.put(form.beside, input.subspan(std::min(first, input.size())));

  const auto source = data::open_source(path, form.kind);
  require(source->size() > 0, "a source has samples");
  constexpr std::uint64_t kMaxChecked = 64;
  for (std::uint64_t i = 0; i < std::min(source->size(), kMaxChecked); ++i) {
    const data::Sample sample = source->sample(i);
    require(sample.values.size() == source->fields().size(), "a sample has a value per field");
    for (const data::Value& value : sample.values) std::visit(Touch{}, value);
  }
}

}  // namespace precast::fuzz
