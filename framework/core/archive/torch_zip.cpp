#include "framework/core/archive/torch_zip.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "framework/core/archive/pickle_reader.h"
#include "framework/core/archive/pickle_writer.h"
#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "framework/core/format.h"

namespace precast {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kFolder = "archive/";
constexpr std::string_view kPickleName = "data.pkl";
/// The folder in which torch.jit stores additional files of a program.
constexpr std::string_view kExtraFolder = "extra/";
/// The keys under which training scripts store the weights inside a checkpoint, the most common
/// first.
constexpr std::array<std::string_view, 7> kWeightKeys = {
    "state_dict", "model", "model_state_dict", "model_state", "net", "network", "weights"};
/// The keys under which timm and torchvision store averages of the weights.
constexpr std::array<std::string_view, 2> kAveragedWeightsKeys = {"state_dict_ema", "model_ema"};
constexpr std::size_t kMaxShownKeys = 12;

bool starts_with(std::span<const std::byte> file, std::string_view start) {
  return file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

/// Whether the file starts with a pickle of protocol 2 or later. torch before 1.6 wrote several
/// pickles, one after the other.
bool is_legacy(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x80} && file[1] >= std::byte{2} &&
         file[1] <= std::byte{5};
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Turns tensor descriptions into records, reading each storage once.
class TensorLoader {
 public:
  TensorLoader(const ZipReader& zip, std::string folder, std::uint64_t max_owned_bytes,
               TensorArchive& archive)
      : zip_(zip),
        folder_(std::move(folder)),
        owned_bytes_left_(max_owned_bytes),
        archive_(archive) {}

  void load(std::string_view name, const PickleValue::Tensor& tensor) {
    name_ = name;
    const auto data = storage(tensor.storage);
    const auto elements = element_count(tensor.shape);
    const auto bytes = byte_count(tensor.storage.dtype, tensor.shape);
    const bool described = elements && bytes && tensor.shape.size() == tensor.strides.size() &&
                           tensor.offset >= 0 &&
                           std::ranges::all_of(tensor.strides, [](auto s) { return s >= 0; });
    if (!described || !fits(tensor, *elements)) {
      fail(
          fmt::format("expected a tensor within its storage of {} elements, got shape {}, strides "
                      "{}, offset {}",
                      tensor.storage.elements, shape_text(tensor.shape), shape_text(tensor.strides),
                      tensor.offset));
    }
    TensorRecord record{std::string(name), tensor.storage.dtype, tensor.shape, {}};
    if (*elements > 0) {
      const auto offset =
          static_cast<std::uint64_t>(tensor.offset) * dtype_info(record.dtype).size_bytes;
      record.bytes = contiguous(tensor) ? data.subspan(offset, *bytes)
                                        : copy(tensor, data.subspan(offset), *bytes);
    }
    archive_.records.push_back(std::move(record));
  }

 private:
  using WindowKey = std::tuple<std::string_view, std::int64_t, std::vector<std::int64_t>,
                               std::vector<std::int64_t>, DType>;

  [[noreturn]] void fail(std::string_view message) const {
    throw CheckpointError(fmt::format("{}: tensor '{}': {}", zip_.source(), name_, message));
  }

  std::span<const std::byte> storage(const PickleValue::Storage& described) {
    auto found = storages_.find(described.key);
    if (found == storages_.end()) {
      const auto data = zip_.read(fmt::format("{}data/{}", folder_, described.key));
      found = storages_.emplace(described.key, data).first;
    }
    const std::size_t size = dtype_info(described.dtype).size_bytes;
    if (found->second.size() % size != 0 || found->second.size() / size != described.elements) {
      fail(fmt::format("expected a storage of {} {}, got {} bytes", described.elements,
                       dtype_info(described.dtype).name, found->second.size()));
    }
    return found->second;
  }

  static bool fits(const PickleValue::Tensor& tensor, std::uint64_t elements) {
    if (elements == 0) return true;
    std::int64_t last = tensor.offset;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      std::int64_t reach = 0;
      if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        return false;
      }
    }
    return static_cast<std::uint64_t>(last) < tensor.storage.elements;
  }

  static bool contiguous(const PickleValue::Tensor& tensor) {
    std::int64_t expected = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      if (tensor.shape[i] == 1) continue;
      if (tensor.strides[i] != expected) return false;
      expected *= tensor.shape[i];
    }
    return true;
  }

  /// Copies a strided tensor into contiguous memory. @param from the bytes of the storage, starting
  /// at the tensor's first element.
  std::span<const std::byte> copy(const PickleValue::Tensor& tensor,
                                  std::span<const std::byte> from, std::uint64_t bytes) {
    WindowKey key{tensor.storage.key, tensor.offset, tensor.shape, tensor.strides,
                  tensor.storage.dtype};
    if (const auto done = copies_.find(key); done != copies_.end()) return done->second;
    if (bytes > owned_bytes_left_) {
      fail(
          fmt::format("expected at most {} bytes of strided tensors, got a tensor whose strides "
                      "expand it to {}",
                      owned_bytes_left_, bytes));
    }
    owned_bytes_left_ -= bytes;

    const std::size_t size = dtype_info(tensor.storage.dtype).size_bytes;
    std::vector<std::byte>& to = archive_.owned.emplace_back(bytes);
    std::vector<std::int64_t> index(tensor.shape.size());
    std::uint64_t at = 0;
    for (std::byte* out = to.data(); out != to.data() + bytes; out += size) {
      std::memcpy(out, from.data() + at * size, size);
      for (std::size_t i = index.size(); i-- > 0;) {
        const auto stride = static_cast<std::uint64_t>(tensor.strides[i]);
        at += stride;
        if (++index[i] < tensor.shape[i]) break;
        at -= stride * static_cast<std::uint64_t>(index[i]);
        index[i] = 0;
      }
    }
    return copies_.emplace(std::move(key), std::span<const std::byte>(to)).first->second;
  }

  const ZipReader& zip_;
  std::string folder_;
  std::uint64_t owned_bytes_left_;
  TensorArchive& archive_;
  std::string_view name_;
  std::map<std::string_view, std::span<const std::byte>> storages_;
  std::map<WindowKey, std::span<const std::byte>> copies_;
};

bool holds_tensors(const PickleValue& value) {
  if (value.kind != Kind::dict) return false;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2) {
    if (value.items[i]->kind == Kind::text && value.items[i + 1]->kind == Kind::tensor) return true;
  }
  return false;
}

/// The first of `keys` under which `top` has a dict of tensors; empty if there is none.
std::string_view first_with_tensors(const PickleValue& top,
                                    std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    const PickleValue* inner = top.find(key);
    if (inner != nullptr && holds_tensors(*inner)) return key;
  }
  return {};
}

/// @param key where first_with_tensors() found the weights
const PickleValue* find_weights(const PickleValue& top, std::string_view key,
                                const std::string& source) {
  if (!key.empty()) return top.find(key);
  if (holds_tensors(top)) return &top;
  std::vector<std::string> keys;
  for (std::size_t i = 0; top.kind == Kind::dict && i < top.items.size(); i += 2) {
    if (top.items[i]->kind == Kind::text) keys.emplace_back(top.items[i]->text.substr(0, 100));
  }
  throw CheckpointError(fmt::format(
      "{}: expected a dict of tensors, or such a dict under one of the keys {}; got {}. "
      "Save model.state_dict()",
      source, fmt::join(kWeightKeys, ", "),
      top.kind != Kind::dict ? "a value that is not a dict"
      : keys.empty()         ? "a dict without names"
                             : fmt::format("the keys {}", first_names(keys, kMaxShownKeys))));
}

/// The folder of `data.pkl`, such as `archive/`. torch names it after the file to which it was
/// first saved.
std::string find_folder(const ZipReader& zip) {
  std::optional<std::string> folder;
  for (const std::string& name : zip.names()) {
    if (name.ends_with("/constants.pkl")) {
      throw CheckpointError(
          fmt::format("{}: expected a file written by torch.save, got a TorchScript archive. "
                      "Convert it in Python: "
                      "torch.save(torch.jit.load(path).state_dict(), new_path)",
                      zip.source()));
    }
    if (!name.ends_with("/data.pkl") || std::ranges::count(name, '/') != 1) continue;
    folder = name.substr(0, name.size() - kPickleName.size());
  }
  if (!folder) {
    throw CheckpointError(
        fmt::format("{}: expected a file written by torch.save, with an entry data.pkl, got "
                    "another zip archive",
                    zip.source()));
  }
  return *folder;
}

void check_byte_order(const ZipReader& zip, const std::string& folder) {
  const std::string name = folder + "byteorder";
  if (!zip.contains(name)) return;  // torch before 2.1
  const auto bytes = zip.read(name);
  if (!starts_with(bytes, "little")) {
    throw CheckpointError(
        fmt::format("{}: expected little-endian tensors, got a different byte order. "
                    "Save the file again on a little-endian machine",
                    zip.source()));
  }
}

void read_metadata(const ZipReader& zip, const std::string& folder, TensorArchive& archive) {
  const std::string tensors = folder + "data/";
  const std::string extra = fmt::format("{}{}{}", folder, kExtraFolder, kTorchMetadataKey);
  for (const std::string& name : zip.names()) {
    // Reads all uncompressed entries except the tensors, because read() compares each name in the
    // directory with the name in the entry's header. If only the metadata were read, a file in
    // which its name is damaged would look like a file without metadata.
    if (name.starts_with(tensors) || (name != extra && !zip.is_stored(name))) continue;
    const auto bytes = zip.read(name);
    if (name != extra) continue;
    archive.metadata.emplace(
        kTorchMetadataKey, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

}  // namespace

void write_torch_zip(const std::filesystem::path& path, std::span<const TensorRecord> records,
                     const std::map<std::string, std::string>& metadata, FileOps& ops) {
  std::set<std::string_view> names;
  for (const TensorRecord& record : records) {
    require(byte_count(record.dtype, record.shape) == record.bytes.size(),
            "a record's bytes fill its shape");
    if (!names.insert(record.name).second)
      throw CheckpointError(repeated_name_text(path.string(), record.name));
  }
  ZipWriter zip(path, ops);
  const auto add = [&](std::string_view name, std::span<const std::byte> bytes) {
    zip.add(fmt::format("{}{}", kFolder, name), bytes);
  };
  add(kPickleName, as_bytes(pickle_state_dict(records)));
  add("byteorder", as_bytes("little"));
  for (std::size_t i = 0; i < records.size(); ++i) {
    add(fmt::format("data/{}", i), records[i].bytes);
  }
  if (const auto extra = metadata.find(std::string(kTorchMetadataKey)); extra != metadata.end())
    add(fmt::format("{}{}", kExtraFolder, kTorchMetadataKey), as_bytes(extra->second));
  add("version", as_bytes("3\n"));
  zip.finish();
}

bool looks_like_torch(std::span<const std::byte> file) {
  return starts_with(file, "PK\x03\x04") || is_legacy(file);
}

TensorArchive parse_torch_zip(std::span<const std::byte> file, const std::string& source) {
  if (is_legacy(file)) {
    throw CheckpointError(fmt::format(
        "{}: expected a zip file, as torch.save has written since 1.6, got the older format. "
        "Convert it in Python: torch.save(torch.load(path, map_location='cpu'), new_path)",
        source));
  }
  const ZipReader zip(file, source);
  const std::string folder = find_folder(zip);
  check_byte_order(zip, folder);
  const Pickle pickle = parse_pickle(zip.read(folder + std::string(kPickleName)), source);
  const std::string_view weights_key = first_with_tensors(*pickle.top, kWeightKeys);
  const PickleValue& weights = *find_weights(*pickle.top, weights_key, source);

  TensorArchive archive;
  archive.averages_key = first_with_tensors(*pickle.top, kAveragedWeightsKeys);
  if (!archive.averages_key.empty()) archive.weights_key = weights_key;
  TensorLoader loader(zip, folder, file.size(), archive);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i + 1 < weights.items.size(); i += 2) {
    const PickleValue& key = *weights.items[i];
    const PickleValue& value = *weights.items[i + 1];
    if (key.kind != Kind::text || value.kind != Kind::tensor) continue;
    if (!names.insert(key.text).second) throw CheckpointError(repeated_name_text(source, key.text));
    loader.load(key.text, *value.tensor);
  }
  read_metadata(zip, folder, archive);
  return archive;
}

}  // namespace precast
