#include "data/sources/label_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/order/class_names.h"
#include "data/order/labels.h"
#include "data/sources/beton.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSeparators = " \t\r,;";
constexpr std::string_view kKaggleHeader = "ImageId,PredictionString";
/// The largest number of names in a message.
constexpr std::size_t kMaxNamed = 5;

using Words = std::vector<std::string_view>;

struct Line {
  std::size_t number;
  Words words;
};

Words words_of(std::string_view line) {
  Words words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kSeparators), line.size()));
    if (line.empty()) return words;
    const std::string_view word = line.substr(0, line.find_first_of(kSeparators));
    line.remove_prefix(word.size());
    words.push_back(word);
  }
}

/// The lines that contain words, as views of `file`.
std::vector<Line> lines_of(const MappedFile& file) {
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    Words words = words_of(line);
    if (!words.empty()) lines.push_back({number, std::move(words)});
  }
  return lines;
}

/// A file's name without folders.
std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// A file's name without folders and image extension: `ILSVRC2012_val_00000001` for
/// `val/ILSVRC2012_val_00000001.JPEG`.
std::string_view key_of(std::string_view path) {
  const std::string_view name = name_of(path);
  return is_image_name(name) ? name.substr(0, name.rfind('.')) : name;
}

/// The part of a line from its first word to its last.
std::string_view trimmed_line(const Words& words) {
  const char* const end = words.back().data() + words.back().size();
  return {words.front().data(), static_cast<std::size_t>(end - words.front().data())};
}

/// The names of all folders in `paths`.
NameSet folders_in(const std::vector<std::string>& paths) {
  NameSet folders;
  for (const std::string& path : paths) {
    std::string_view rest = path;
    for (std::size_t slash = rest.find('/'); slash != std::string_view::npos;
         slash = rest.find('/')) {
      folders.insert(rest.substr(0, slash));
      rest.remove_prefix(slash + 1);
    }
  }
  return folders;
}

std::string abbreviated_list(const std::vector<std::string>& names) {
  const auto shown = std::span(names).first(std::min(names.size(), kMaxNamed));
  const std::string more =
      names.size() > shown.size() ? fmt::format(" and {} more", names.size() - shown.size()) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), more);
}

/// Matches images with lines.
class ListArranger {
 public:
  ListArranger(const std::vector<std::string>& paths, const fs::path& list,
               const ClassList& classes, const std::string& where)
      : paths_(paths),
        list_(list.string()),
        class_list_(classes),
        classes_(classes.names),
        where_(where),
        file_(list) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (skip_file(paths[i], skipped_)) continue;
      const auto [other, is_new] = images_.emplace(key_of(paths[i]), i);
      if (!is_new) {
        throw DataError(fmt::format(
            "{}: expected images whose names differ even without folder and extension, because the "
            "labels in {} are matched with these names, got {} and {}. Rename one",
            where, list_, paths[other->second], paths[i]));
      }
    }
    if (images_.empty())
      throw DataError(
          fmt::format("{}: expected images for the labels of {}, got none", where, list_));
  }

  ClassFiles arrange() {
    read_labels();
    ClassFiles result;
    result.class_names = classes_;
    if (classes_.empty()) {
      const std::set<std::string_view> found = names_of(labels_);
      result.class_names.assign(found.begin(), found.end());
    }
    const auto numbers = labels_by_name(result.class_names);
    for (const auto& [path, name] : labels_) result.files.push_back({path, numbers.at(name)});
    std::ranges::sort(result.files, {}, [this](const ClassFile& file) {
      return std::pair(file.label, name_of(paths_[file.path]));
    });
    result.skipped = std::move(skipped_);
    return result;
  }

 private:
  /// Pairs of a path's index and a class.
  using Labels = std::vector<std::pair<std::size_t, std::string_view>>;

  static std::set<std::string_view> names_of(const Labels& labels) {
    std::set<std::string_view> names;
    for (const auto& [path, name] : labels) names.insert(name);
    return names;
  }

  void read_labels() {
    std::vector<Line> lines = lines_of(file_);
    const bool kaggle = !lines.empty() && lines[0].words == words_of(kKaggleHeader);
    if (kaggle) lines.erase(lines.begin());
    const std::size_t words = lines.empty() ? 0 : std::min<std::size_t>(lines[0].words.size(), 2);
    for (const Line& line : lines) {
      if (kaggle ? line.words.size() >= 2 : line.words.size() == words) continue;
      throw DataError(fmt::format(
          "{}: line {}: expected a name and a class on every line, or only a class on every line, "
          "got {} words",
          list_, line.number, line.words.size()));
    }
    if (kaggle || words == 2) {
      label_by_name(lines);
    } else {
      label_in_order(lines);
    }
  }

  void label_by_name(const std::vector<Line>& lines) {
    std::vector<std::string> surplus;
    std::map<std::string_view, std::size_t> missing = images_;
    for (const Line& line : lines) {
      const std::string_view key = key_of(line.words[0]);
      const auto image = images_.find(key);
      if (image == images_.end()) {
        surplus.emplace_back(line.words[0]);
      } else if (missing.erase(key) == 0) {
        throw DataError(fmt::format("{}: line {}: expected each image once, got '{}' again", list_,
                                    line.number, line.words[0]));
      } else {
        labels_.emplace_back(image->second, class_of(line.words[1], line.number));
      }
    }
    std::vector<std::string> unlabelled;
    for (const auto& [key, path] : missing) unlabelled.push_back(paths_[path]);
    if (surplus.empty() && unlabelled.empty()) return;
    throw DataError(fmt::format(
        "{}: expected a label for each image of {} and no others, got {} images without a "
        "label{}{} "
        "and {} labels without an image{}{}",
        list_, where_, unlabelled.size(), unlabelled.empty() ? "" : ": ",
        abbreviated_list(unlabelled), surplus.size(), surplus.empty() ? "" : ": ",
        abbreviated_list(surplus)));
  }

  void label_in_order(const std::vector<Line>& lines) {
    if (lines.size() != images_.size()) {
      throw DataError(
          fmt::format("{}: expected a line for each of the {} images of {}, in the order of their "
                      "names, got {} lines",
                      list_, images_.size(), where_, lines.size()));
    }
    // The order of the whole names, as programs list them: `a-2.png`, `a.png`. Without extensions,
    // `a` would come first.
    std::vector<std::size_t> sorted;
    for (const auto& [key, path] : images_) sorted.push_back(path);
    std::ranges::sort(sorted, {}, [this](std::size_t path) { return name_of(paths_[path]); });
    auto line = lines.begin();
    for (const std::size_t path : sorted) {
      labels_.emplace_back(path, class_of(line->words[0], line->number));
      ++line;
    }
  }

  /// A word that is a class's name takes precedence over a position in the list of classes.
  std::string_view class_of(std::string_view word, std::size_t line) const {
    if (known_.contains(word)) return word;
    const auto number = parse_number<std::uint64_t>(word);
    if (number && (classes_.empty() || class_list_.from_dataset)) {
      throw DataError(fmt::format(
          "{}: line {}: expected the name of a class, such as n01440764, got the number {}. "
          "ILSVRC numbers its classes from 1: replace the numbers by names, or give the list of "
          "WordNet ids in the order of these numbers with --class-names, for the training set too",
          list_, line, word));
    }
    if (number && (*number < 1 || *number > classes_.size())) {
      throw DataError(
          fmt::format("{}: line {}: expected the number of a class in the --class-names file, from "
                      "1 to {} (empty lines do not count), got {}",
                      list_, line, classes_.size(), word));
    }
    if (number) return classes_[*number - 1];
    if (!classes_.empty()) {
      throw DataError(
          fmt::format("{}: line {}: expected one of the {} classes of --class-names, got '{}'",
                      list_, line, classes_.size(), word));
    }
    return word;
  }

  const std::vector<std::string>& paths_;
  const std::string list_;
  const ClassList& class_list_;
  const std::vector<std::string>& classes_;
  const std::unordered_set<std::string_view> known_{classes_.begin(), classes_.end()};
  const std::string& where_;
  MappedFile file_;
  /// Index of each image's path, by its key.
  std::map<std::string_view, std::size_t> images_;
  Labels labels_;
  SkippedFiles skipped_;
};

}  // namespace

std::vector<std::string> read_class_list(const fs::path& file, const NameSet& names) {
  const MappedFile mapped(file);
  const std::vector<Line> lines = lines_of(mapped);
  const bool names_are_lines = std::ranges::any_of(lines, [&](const Line& line) {
    return line.words.size() > 1 && names.contains(trimmed_line(line.words));
  });
  std::vector<std::string> classes;
  for (const Line& line : lines)
    classes.emplace_back(names_are_lines ? trimmed_line(line.words) : line.words[0]);
  if (classes.empty())
    throw DataError(
        fmt::format("{}: expected a class on each line, got no classes", file.string()));
  if (const auto same = find_duplicate_name(classes)) {
    const bool words_ignored = !names_are_lines && std::ranges::any_of(lines, [](const Line& line) {
      return line.words.size() > 1;
    });
    throw DataError(
        fmt::format("{}: expected each class once, got '{}' again{}", file.string(),
                    classes[static_cast<std::size_t>(same->first)],
                    words_ignored ? ". The first word of each line is the name of the class" : ""));
  }
  return classes;
}

ClassList read_classes(const fs::path& file, const NameSet& names) {
  if (file.empty()) return {};
  if (!is_beton(file)) return {read_class_list(file, names), /*from_dataset=*/false};
  const BetonReader reader(file);
  const std::size_t field = default_label_field(reader);
  if (field < reader.fields().size()) {
    std::vector<std::string> classes = class_names_of(reader, field);
    if (const auto same = find_duplicate_name(classes)) {
      throw DataError(fmt::format(
          "{}: expected a different name for each class, got '{}' for labels {} and {}. Give a "
          "list of names, one per line",
          file.string(), classes[static_cast<std::size_t>(same->first)], same->first,
          same->second));
    }
    if (!classes.empty()) return {std::move(classes), /*from_dataset=*/true};
  }
  throw DataError(fmt::format(
      "{}: expected a .beton file with class names, got a file without class names. Give a list of "
      "names, one per line",
      file.string()));
}

ClassFiles arrange_by_list(const std::vector<std::string>& paths, const fs::path& list,
                           const ClassList& classes, const std::string& where) {
  return ListArranger(paths, list, classes, where).arrange();
}

void ImageListOptions::options(Schema& schema) {
  schema.add("labels", &labels,
             "file with the classes of images that are not in class folders: LOC_val_solution.csv, "
             "lines `NAME CLASS`, or one class per line in the order of the images' names; for a "
             ".npy file: the .npy file with its labels");
  schema.add("classes", &classes, kClassesHelp);
}

ClassFiles arrange_images(const std::vector<std::string>& paths,
                          const std::vector<std::string>& folders, const ImageListOptions& options,
                          const std::string& where) {
  const ClassList classes =
      read_classes(options.classes, options.classes.empty() ? NameSet() : folders_in(paths));
  if (!options.labels.empty()) return arrange_by_list(paths, options.labels, classes, where);
  return arrange_by_class(paths, folders, where, classes.names);
}

}  // namespace precast::data
