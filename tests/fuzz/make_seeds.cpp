// make_seeds FOLDER: writes FOLDER/<target>/<name>, small files from which the fuzzer starts. Most
// of them are valid. They come from the goldens and from configs/, or are made here.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/format.h"
#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "data/decode/jpeg_sidecar.h"
#include "framework/core/archive/manifest.h"
#include "framework/core/archive/npy.h"
#include "framework/core/archive/safetensors.h"
#include "framework/core/archive/torch_zip.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/small_pages.h"
#include "tests/data/outside/test_message.h"
#include "tests/data/ring/test_ring.h"
#include "tests/data/sources/sample_images.h"
#include "tests/support/paths.h"
#include "tests/support/text_file.h"

namespace precast::fuzz {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

void put(const fs::path& path, std::span<const std::byte> bytes) {
  fs::create_directories(path.parent_path());
  test::write_bytes(path, bytes);
}

/// Writes the zip files of torch's goldens, the pickles in them, and their tensors as safetensors
/// and .npy files.
void make_weights(const fs::path& to) {
  for (const auto& item : fs::directory_iterator(test::golden_dir() + "/torch")) {
    if (item.path().extension() != ".pt") continue;
    const std::string name = item.path().stem();
    const Bytes file = read_file(item.path());
    put(to / "torch_zip" / name, file);
    try {
      const ZipReader zip(file, name);
      for (const std::string& entry : zip.names()) {
        if (entry.ends_with("data.pkl")) put(to / "pickle" / name, zip.read(entry));
      }
      const TensorArchive weights = parse_torch_zip(file, name);
      fs::create_directories(to / "safetensors");
      write_safetensors(to / "safetensors" / name, weights.records, {{"format", "pt"}});
      if (!weights.records.empty() && weights.records[0].dtype != DType::bf16) {
        const TensorRecord& first = weights.records[0];
        fs::create_directories(to / "npy");
        write_npy(to / "npy" / name, first.dtype, first.shape, first.bytes);
      }
    } catch (const Error&) {
      // A golden that must be rejected is still a seed.
    }
  }
}

/// Adds a copy of each file without the digest that precast writes. With a digest, the parser would
/// reject every change immediately, and the rest of its code would not be reached.
void remove_digests(const fs::path& folder) {
  for (const auto& item : fs::directory_iterator(folder)) {
    const Bytes file = read_file(item.path());
    const auto length = data::load<std::uint64_t>(file.data());
    const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
    auto header = nlohmann::ordered_json::parse(text);
    header["__metadata__"].erase("precast_xxh3_64");
    const std::string shorter = header.dump();
    const std::uint64_t size = shorter.size();
    Bytes seed(sizeof size);
    data::store(seed.data(), size);
    const auto header_bytes = std::as_bytes(std::span(shorter));
    seed.insert(seed.end(), header_bytes.begin(), header_bytes.end());
    seed.insert(seed.end(), file.begin() + 8 + static_cast<std::ptrdiff_t>(length), file.end());
    put(item.path().string() + ".no_digest", seed);
  }
}

/// The same limit as in tools/fuzz.
constexpr std::size_t kLargestBeton = 12288;

/// Cuts a file of FFCV to its first samples, so that it takes kilobytes instead of megabytes.
/// Values follow each other without pages, raw images have 1 x 1 pixel, and JPEGs are cut to 40
/// bytes.
Bytes compact(const Bytes& file, std::uint64_t max_samples) {
  constexpr std::size_t kJpegBytes = 40;
  const data::BetonReader reader(file, "golden");
  const std::uint64_t samples = std::min(reader.size(), max_samples);
  const std::size_t metadata = data::kHeaderBytes + reader.fields().size() * data::kFieldBytes;
  // The reader does not report the stride of the records; the layout gives it.
  std::vector<data::FieldType> types;
  for (const data::FieldInfo& field : reader.fields()) types.push_back(field.type);
  const std::size_t record = data::record_layout(types).bytes;

  Bytes seed(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(metadata + samples * record));
  Bytes table;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    for (std::size_t field = 0; field < types.size(); ++field) {
      if (!data::has_blob(types[field])) continue;
      auto blob = reader.blob(sample, field);
      if (blob.empty()) continue;
      std::size_t at = metadata + sample * record + reader.fields()[field].offset;
      if (types[field] == data::FieldType::image) {
        if (seed[at] == std::byte{1}) {
          data::store(seed.data() + at + data::kImageWidthAt, std::uint16_t{1});
          data::store(seed.data() + at + data::kImageHeightAt, std::uint16_t{1});
          blob = blob.first(3);
        }
        blob = blob.first(std::min(blob.size(), kJpegBytes));
        at += data::kImagePointerAt;
      }
      data::store(seed.data() + at, std::uint64_t{seed.size()});
      const std::size_t row = table.size();
      table.resize(row + data::kAllocationBytes);
      data::store(table.data() + row, sample);
      data::store(table.data() + row + 8, std::uint64_t{seed.size()});
      data::store(table.data() + row + 16, std::uint64_t{blob.size()});
      seed.insert(seed.end(), blob.begin(), blob.end());
    }
  }
  data::store(seed.data() + 8, samples);
  data::store(seed.data() + 16, std::uint64_t{seed.size()});
  seed.insert(seed.end(), table.begin(), table.end());
  return seed;
}

void make_betons(const fs::path& to) {
  for (const auto& item : fs::directory_iterator(test::golden_dir() + "/beton")) {
    if (item.path().extension() != ".gz") continue;
    const std::string name = item.path().stem().stem();
    // Skips files with custom fields, because a file does not say where their values are, and
    // `overflow_w1`, because values of half a megabyte are too large for a seed.
    if (name.starts_with("custom") || name.starts_with("overflow")) continue;
    const Bytes seed = compact(test::golden_beton(name), 3);
    const data::BetonReader check(seed, name);
    put(to / "beton" / name, seed);
    for (const bool checksums : {false, true}) {
      const Bytes small = test::with_small_pages(test::golden_beton(name), checksums);
      if (small.size() <= kLargestBeton)
        put(to / "beton" / (name + (checksums ? "_sums" : "_small")), small);
    }
  }
}

void make_manifests(const fs::path& to) {
  Manifest manifest;
  const auto add = [&](const std::string& name) {
    const std::string text = manifest_text(manifest);
    put(to / "manifest" / name, std::as_bytes(std::span(text)));
  };
  add("empty");
  manifest.step = 5004;
  manifest.metric = 0.71;
  manifest.files = {{"model.safetensors", 1234, 5}, {"state.json", 0, UINT64_MAX}};
  add("two_files");
}

void make_recipes(const fs::path& to) {
  const fs::path configs = fs::path(test::source_dir()) / "configs";
  for (const auto& item : fs::recursive_directory_iterator(configs)) {
    if (item.path().extension() != ".yaml") continue;
    put(to / "recipe" / item.path().stem(), read_file(item.path()));
  }
}

void make_jpegs(const fs::path& to) {
  using test::JpegKind;
  const std::vector<std::pair<const char*, JpegKind>> kinds = {
      {"rgb", JpegKind::rgb},
      {"grey", JpegKind::grey},
      {"cmyk", JpegKind::cmyk},
      {"progressive", JpegKind::progressive},
      {"three_scans", JpegKind::three_scans}};
  for (const auto& [name, kind] : kinds) {
    for (const int side : {8, 35}) {
      Bytes file = test::jpeg_file(test::gradient(side, 2 * side - 1), kind);
      for (int byte = 0; byte < 8; ++byte) file.push_back(static_cast<std::byte>(17 * byte + side));
      put(to / "jpeg" / fmt::format("{}_{}", name, side), file);
      put(to / "jpeg_lanes" / fmt::format("{}_{}", name, side), file);
    }
  }
}

/// Makes sidecars with fewer samples than a block, with two blocks, and with no samples.
void make_sidecars(const fs::path& to) {
  fs::create_directories(to / "jpeg_sidecar");
  for (const std::uint64_t samples : {0, 3, 70}) {
    data::JpegSidecarWriter writer(to / "jpeg_sidecar" / fmt::format("samples_{}", samples), 8);
    for (std::uint64_t sample = 0; sample < samples; ++sample)
      writer.add(std::vector<std::uint64_t>(sample % 3, sample));
    writer.complete("3031323334353637");
    writer.commit();
  }
}

/// Writes a segment with a batch and the end of its pass, and a producer's message.
void make_rings(const fs::path& to) {
  test::TestRing ring;
  put(to / "ring" / "segment", ring.bytes());
  const data::RingReplyMessage welcome{.kind = 1, .cell = 1, .sequence = 2};
  put(to / "ring" / "welcome", std::as_bytes(std::span(&welcome, 1)));
}

/// Writes messages: batches with and without a position, and an end.
void make_outside_messages(const fs::path& to) {
  const fs::path folder = to / "outside_message";
  const test::TestBatch batch(2);
  put(folder / "batch", batch.message());
  put(folder / "position", batch.message(data::RingPosition{.epoch = 1, .batch = 2}));
  put(folder / "end", test::raw_message(R"({"end":"reason"})"));
}

void put_text(const fs::path& path, std::string_view text) {
  put(path, std::as_bytes(std::span(text)));
}

/// An input for fuzz::source(). @param form the index in its kForms.
std::string source_seed(char form, std::string_view file, std::string_view beside = {}) {
  std::string seed = {form, static_cast<char>(file.size() & 255),
                      static_cast<char>(file.size() >> 8)};
  return seed.append(file).append(beside);
}

void make_weights_specs(const fs::path& to) {
  const WeightsSpec full = {.arch = "resnet18",
                            .params = {{"log_bias", "true"}},
                            .blurpool = true,
                            .blurred = {{"layer2.0.conv1", 64}},
                            .num_classes = 2,
                            .class_names = {"cat", "dog"},
                            .mean = {123.675, 116.28, 103.53},
                            .std = {58.395, 57.12, 57.375},
                            .resolution_px = 256};
  put_text(to / "weights_spec" / "full", weights_spec_text(full));
  put_text(to / "weights_spec" / "plain", weights_spec_text({.arch = "layers"}));
  // The smallest possible torch file, with a model spec.
  const std::vector<std::byte> bytes(4);
  const std::vector<TensorRecord> tensors = {{"w", DType::f32, {1}, bytes}};
  save_weights(to / "spec.pt", tensors, weights_metadata(full));
  put(to / "torch_zip" / "spec", read_file(to / "spec.pt"));
  fs::remove(to / "spec.pt");
}

/// Writes texts: tables, filter expressions, a sample list, and the text of a block of checksums.
void make_texts(const fs::path& to) {
  constexpr std::string_view kList =
      "path,label,\"a \"\"name\"\"\"\r\nx/y.txt,3,1.5e3\n\"z,\n\",-4,.25\n";
  put_text(to / "delimited" / "list", kList);
  put_text(to / "source" / "csv", source_seed(0, kList));
  put_text(
      to / "source" / "jsonl",
      source_seed(
          2, "{\"a\": 1, \"b\": [null, 2.5], \"c\": \"x\"}\n{\"a\": 2, \"b\": {}, \"c\": \"\"}\n"));
  put_text(to / "filter" / "all", "label in [1, 2, 3] and not (weight <= 0.5) or label != 4");
  put_text(to / "filter" / "lists", "label not in (1, 5) and weight > 3e0");
  put_text(to / "sample_list" / "ranges", "7\n0:4 # the first\n\n4095\n 100:200\r\n");
  put_text(to / "sums" / "info",
           R"({"classes": {"label": ["cat", "dog"]}, "written": {"workers": "2"}})");
}

void make_images(const fs::path& to) {
  const fs::path files = fs::path(test::golden_dir()) / "images/files";
  for (const auto& item : fs::directory_iterator(files)) {
    if (item.file_size() <= 2048)
      put(to / "image_file" / item.path().filename(), read_file(item.path()));
  }
  for (const int channels : {1, 2, 3, 4})
    put(to / "image_file" / fmt::format("png_{}", channels),
        test::png_file(test::gradient(9, 7), channels));
}

/// Writes sources: arrays with labels, a pair of IDX files, a record of CIFAR, a shard.
void make_sources(const fs::path& to) {
  using namespace std::string_literals;
  const fs::path file = to / "file";
  const std::vector<std::byte> elements(24, std::byte{1});
  write_npy(file, "|u1", std::vector<std::int64_t>{2, 3, 4}, elements);
  const std::string images = test::read_text(file);
  write_npy(file, "<i8", std::vector<std::int64_t>{2}, std::span(elements).first(16));
  const std::string labels = test::read_text(file);
  put_text(to / "source" / "npy", source_seed(4, images, labels));
  put_text(to / "source" / "idx", source_seed(5, "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02wxyz"s,
                                              "\0\0\x08\x01\0\0\0\x02\x01\0"s));
  put_text(to / "source" / "cifar", source_seed(6, "\x07" + std::string(3072, 'p')));
  const fs::path tree = to / "shard";
  put_text(tree / "a.cls", "7");
  put_text(tree / "a.json", "[1]");
  test::make_tar(file, tree, "");
  put_text(to / "source" / "webdataset", source_seed(7, test::read_text(file)));
  fs::remove_all(tree);
  fs::remove(file);
}

void make_tars(const fs::path& to) {
  const fs::path tree = to / "tree";
  put_text(tree / "a/b.txt", "text");
  put_text(tree / "a/c.cls", "7");
  fs::create_directories(to / "tar");
  test::make_tar(to / "tar" / "folders", tree, "");
  fs::remove_all(tree);
  put(tree / "inner.tar", read_file(to / "tar" / "folders"));
  test::make_tar(to / "tar" / "tar_in_tar", tree, "train/");
  fs::remove_all(tree);
}

}  // namespace
}  // namespace precast::fuzz

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path to = arguments[1];
  precast::fuzz::make_weights(to);
  precast::fuzz::remove_digests(to / "safetensors");
  precast::fuzz::make_betons(to);
  precast::fuzz::make_jpegs(to);
  precast::fuzz::make_sidecars(to);
  precast::fuzz::make_recipes(to);
  precast::fuzz::make_manifests(to);
  precast::fuzz::make_texts(to);
  precast::fuzz::make_weights_specs(to);
  precast::fuzz::make_images(to);
  precast::fuzz::make_tars(to);
  precast::fuzz::make_sources(to);
  precast::fuzz::make_rings(to);
  precast::fuzz::make_outside_messages(to);
  return 0;
}
