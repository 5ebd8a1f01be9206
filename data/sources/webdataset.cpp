#include "data/sources/webdataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/beton/format.h"
#include "data/image/image_file.h"
#include "data/sources/npy_array.h"
#include "data/sources/tar_index.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/lower_case.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kImageExtensions = {"jpg",  "jpeg", "png",
                                                              "webp", "ppm",  "pgm"};
constexpr std::array<std::string_view, 5> kIntegerExtensions = {"cls", "index", "inx", "id",
                                                                "count"};
/// Number of members read to distinguish shards from a tar of class folders.
constexpr std::size_t kMaxProbedMembers = 16;

constexpr const char* kClassHint =
    ". Replace class names by their labels (0, 1, ...), or extract the shards and use a folder for "
    "each class, or a .csv of the files with --class-column";

struct Name {
  std::string_view key;
  std::string_view extension;
};

/// `train/00001.seg.png`: key `train/00001`, ending `seg.png`. Returns nothing for a name that has
/// no dot or begins with one (`.DS_Store`, `._1.jpg`).
std::optional<Name> split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos || dot == slash + 1) return std::nullopt;
  return Name{path.substr(0, dot), path.substr(dot + 1)};
}

template <std::size_t kCount>
bool is_one_of(std::string_view extension, const std::array<std::string_view, kCount>& extensions) {
  return std::ranges::find(extensions, extension.substr(extension.rfind('.') + 1)) !=
         extensions.end();
}

/// Endings are case-insensitive.
void lower_extension(std::string& path) {
  const std::string extension = lower_case(split(path)->extension);
  path.replace(path.size() - extension.size(), extension.size(), extension);
}

std::vector<fs::path> shards_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> shards;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == kTarExtension) shards.push_back(entry.path());
  std::ranges::sort(shards);
  return shards;
}

std::int64_t integer_of(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  const auto number = parse_number<std::int64_t>(text);
  if (!number)
    throw DataError(fmt::format("expected a whole number, got '{}'", text.substr(0, 40)));
  return *number;
}

/// A mapped shard and the index of its members.
struct Shard {
  explicit Shard(const fs::path& path) : file(path), index(index_tar(file.bytes(), path.string())) {
    // The number of shards may exceed the number of files that a process may open.
    file.close_descriptor();
  }
  MappedFile file;
  TarIndex index;
};

class WebDataset final : public Source {
 public:
  /// @param path names the shards in messages.
  WebDataset(const std::vector<fs::path>& shards, const fs::path& path) {
    for (const fs::path& shard : shards) {
      shards_.push_back(std::make_unique<Shard>(shard));
      find_samples(shards_.size() - 1);
    }
    if (samples_.empty())
      throw DataError(fmt::format("{}: expected tar shards with samples, got none", path.string()));
    choose_fields();
    count_left_out();
  }

  [[nodiscard]] std::uint64_t size() const override { return samples_.size(); }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    const std::span<const TarMember> members = members_of(samples_[i]);
    Sample sample{sample_name(i), {}};
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      const auto member = member_of(members, field);
      if (member == members.end()) {
        throw DataError(fmt::format("{}: expected a member .{}, as in the first sample, got none",
                                    sample.name, extensions_[field]));
      }
      try {
        sample.values.push_back(value_of(fields_[field].type, *member));
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}.{}: {}{}", sample.name, extensions_[field], error.what(),
                                    extensions_[field] == "cls" ? kClassHint : ""));
      }
    }
    return sample;
  }

 private:
  /// Members [first, first + count) of a shard.
  struct SampleSet {
    std::uint32_t shard;
    std::uint32_t count;
    std::uint64_t first;
  };

  [[nodiscard]] std::span<const TarMember> members_of(const SampleSet& sample) const {
    return std::span(shards_[sample.shard]->index.files).subspan(sample.first, sample.count);
  }
  /// Whether the member is a field's image in a different format from the first sample's, such as
  /// `seg.webp` instead of `seg.png`. Never true if the first sample has several images with that
  /// name.
  [[nodiscard]] bool is_other_format(std::string_view extension, std::size_t field) const {
    const auto same_name = [&](std::string_view other) {
      return is_one_of(other, kImageExtensions) &&
             extension.substr(0, extension.rfind('.') + 1) == other.substr(0, other.rfind('.') + 1);
    };
    return same_name(extension) && same_name(extensions_[field]) &&
           std::ranges::count_if(extensions_, same_name) == 1;
  }
  [[nodiscard]] std::span<const TarMember>::iterator member_of(std::span<const TarMember> members,
                                                               std::size_t field) const {
    const auto member = std::ranges::find_if(members, [&](const TarMember& candidate) {
      return split(candidate.path)->extension == extensions_[field];
    });
    if (member != members.end()) return member;
    return std::ranges::find_if(members, [&](const TarMember& candidate) {
      return is_other_format(split(candidate.path)->extension, field);
    });
  }
  [[nodiscard]] std::string sample_name(std::uint64_t i) const {
    return fmt::format("{}:{}", shards_[samples_[i].shard]->file.path().string(),
                       split(members_of(samples_[i])[0].path)->key);
  }

  void reject_duplicate(const TarMember& member, std::span<const TarMember> before,
                        std::size_t shard) const {
    if (std::ranges::find(before, member.path, &TarMember::path) == before.end()) return;
    throw DataError(fmt::format("{}: expected each member of a sample once, got {} again",
                                shards_[shard]->file.path().string(), member.path));
  }

  /// Assumes that the members of a sample are adjacent, as WebDataset itself requires.
  void find_samples(std::size_t shard) {
    std::erase_if(shards_[shard]->index.files, [this](const TarMember& member) {
      const bool named = split(member.path).has_value();
      if (named) return false;
      ++notes_["skipped_files"];
      skipped_files_.add("not named as a sample's member", member.path);
      return true;
    });
    std::vector<TarMember>& files = shards_[shard]->index.files;
    for (std::size_t i = 0; i < files.size(); ++i) {
      lower_extension(files[i].path);
      const bool same = i > 0 && split(files[i].path)->key == split(files[i - 1].path)->key;
      if (same) {
        reject_duplicate(files[i], members_of(samples_.back()), shard);
        ++samples_.back().count;
      } else {
        samples_.push_back({static_cast<std::uint32_t>(shard), 1, i});
      }
    }
  }

  /// The ending of the image that is called `image`: the first one without a dot, else the first
  /// one, because `depth.png` and `seg.png` are rarely the input. Empty if there is no image.
  [[nodiscard]] std::string image_extension() const {
    std::string first;
    for (const TarMember& member : members_of(samples_[0])) {
      const std::string_view extension = split(member.path)->extension;
      if (!is_one_of(extension, kImageExtensions)) continue;
      if (extension.find('.') == std::string_view::npos) return std::string(extension);
      if (first.empty()) first = extension;
    }
    return first;
  }

  void choose_fields() {
    struct Choice {
      int rank;
      SourceField field;
      std::string extension;
    };
    std::vector<Choice> choices;
    const auto promote = [](Choice& choice, int rank, const char* name) {
      choice.rank = rank;
      choice.field.name = name;
      choice.field.full_name.clear();
      choice.field.chosen_from = choice.extension;
    };
    const std::string image = image_extension();
    for (const TarMember& member : members_of(samples_[0])) {
      const std::string extension(split(member.path)->extension);
      Choice choice{2, {extension.substr(0, kFieldNameBytes), "bytes"}, extension};
      if (extension.size() > kFieldNameBytes) choice.field.full_name = extension;
      if (is_one_of(extension, kImageExtensions)) {
        choice.field.type = "image";
        if (extension == image) promote(choice, 0, "image");
      } else if (is_one_of(extension, kIntegerExtensions)) {
        choice.field.type = "int";
        if (extension == "cls") promote(choice, 1, "label");
      } else if (extension == "json") {
        choice.field.type = "json";
      } else if (extension == "npy") {
        choice.field.type = "ndarray";
        choice.field.array = npy_array(member.bytes, sample_name(0)).format;
      }
      choices.push_back(std::move(choice));
    }
    std::ranges::stable_sort(choices, {}, &Choice::rank);
    fields_.clear();
    for (Choice& choice : choices) {
      fields_.push_back(std::move(choice.field));
      extensions_.push_back(std::move(choice.extension));
    }
  }

  /// Counts the members that are left out because the first sample has no member with their ending.
  void count_left_out() {
    for (const SampleSet& sample : samples_) {
      const std::span<const TarMember> members = members_of(sample);
      std::size_t used = 0;
      for (std::size_t field = 0; field < fields_.size(); ++field)
        used += member_of(members, field) != members.end() ? 1 : 0;
      if (used < members.size()) notes_["left_out_members"] += members.size() - used;
    }
  }

  [[nodiscard]] static Value value_of(const std::string& type, const TarMember& member) {
    const std::span<const std::byte> bytes = member.bytes;
    if (type == "image")
      return ImageInput{{bytes.begin(), bytes.end()}, {}, format_from_extension(member.path)};
    if (type == "int") return integer_of(bytes);
    if (type == "ndarray") return npy_array(bytes, "npy");
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }

  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<SampleSet> samples_;
  /// One per field.
  std::vector<std::string> extensions_;
};

}  // namespace

std::unique_ptr<Source> open_webdataset(const fs::path& path) {
  return std::make_unique<WebDataset>(shards_of(path), path);
}

std::unique_ptr<Source> open_webdataset_shards(const std::vector<fs::path>& shards) {
  require(!shards.empty(), "there are shards");
  return std::make_unique<WebDataset>(shards, shards[0]);
}

bool is_webdataset(const fs::path& path) {
  // A folder with subfolders is not a folder of shards: it may contain class folders and an
  // unrelated archive.
  if (fs::is_directory(path) &&
      std::any_of(fs::directory_iterator(path), fs::directory_iterator(),
                  [](const fs::directory_entry& entry) { return entry.is_directory(); }))
    return false;
  const std::vector<fs::path> shards = shards_of(path);
  if (shards.empty() || shards[0].extension() != kTarExtension) return false;
  const MappedFile file(shards[0]);
  TarIndex index = index_tar(file.bytes(), shards[0].string(), kMaxProbedMembers);
  // In a shard, unlike in a tar of class folders, there are adjacent files that have the same key
  // and are not both images.
  for (std::size_t i = 1; i < index.files.size(); ++i) {
    if (!split(index.files[i - 1].path) || !split(index.files[i].path)) continue;
    lower_extension(index.files[i - 1].path);
    lower_extension(index.files[i].path);
    const auto before = split(index.files[i - 1].path);
    const auto now = split(index.files[i].path);
    if (before->key == now->key && !(is_one_of(before->extension, kImageExtensions) &&
                                     is_one_of(now->extension, kImageExtensions)))
      return true;
  }
  return false;
}

}  // namespace precast::data
