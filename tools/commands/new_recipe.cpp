#include "tools/commands/new_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <boost/program_options.hpp>
#include <filesystem>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/loader/stored_pixels.h"
#include "data/order/class_names.h"
#include "data/order/labels.h"
#include "framework/core/config/node.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/shell_word.h"
#include "tools/cli/arguments.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using data::BetonReader;
using data::FieldType;

/// If the median of the images' shorter sides is at most this, images are not cropped and the
/// network is small.
constexpr int kSmallSidePx = 64;
constexpr int kLargestTrainPx = 192;
constexpr std::int64_t kLargestBatch = 256;
/// Approximate number of steps that a first training run needs.
constexpr std::int64_t kTargetSteps = 2000;

/// The facts about the dataset on which the recipe depends.
struct DataFacts {
  std::uint64_t samples = 0;
  std::string label;
  bool label_is_first = true;
  std::int64_t classes = 0;
  std::vector<std::string> names;
  /// Minimum and median of the images' shorter sides, in px.
  int min_px = 0;
  int median_px = 0;
  bool is_uniform_size = false;
};

/// data::default_label_field(). @throws DataError if there is none
std::size_t label_field_of(const BetonReader& reader) {
  const std::size_t field = data::default_label_field(reader);
  if (field < reader.fields().size()) return field;
  throw DataError(fmt::format(
      "{}: expected an int field with labels, got none. Write the file from class folders, or from "
      "a table with a column of labels",
      reader.path().string()));
}

std::int64_t count_classes(const BetonReader& reader, std::size_t field) {
  std::int64_t most = -1;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const std::int64_t label = reader.integer(i, field);
    if (label < 0) {
      throw DataError(fmt::format("{}: sample {}: expected a label of 0 or more, got {}",
                                  reader.path().string(), i, label));
    }
    most = std::max(most, label);
  }
  return most + 1;
}

/// The field that training uses as the image: the first image field, else the first field of uint8
/// pixels. @throws DataError
std::size_t image_field_of(const BetonReader& reader) {
  const auto& fields = reader.fields();
  const std::size_t image = reader.first_field(FieldType::image);
  if (image < fields.size()) return image;
  const auto pixels = std::ranges::find_if(fields, [](const data::FieldInfo& field) {
    return field.tag.kind == data::FieldTag::Kind::pixels && field.tag.dtype == "|u1";
  });
  if (pixels != fields.end()) return static_cast<std::size_t>(pixels - fields.begin());
  throw DataError(fmt::format(
      "{}: expected an image field, got none. See configs/README.md for recipes for other data",
      reader.path().string()));
}

BetonReader::ImageSize image_size(const BetonReader& reader, std::uint64_t sample,
                                  std::size_t field) {
  const data::FieldInfo& info = reader.fields()[field];
  if (info.type == FieldType::image) return reader.image_size(sample, field);
  std::vector<std::uint64_t> extents;
  const data::StoredPixels stored = data::stored_pixels(info, reader.blob(sample, field), extents);
  return {.width = stored.width, .height = stored.height};
}

void measure_images(const BetonReader& reader, std::size_t field, DataFacts& facts) {
  std::vector<int> sides;
  facts.is_uniform_size = true;
  const BetonReader::ImageSize first = image_size(reader, 0, field);
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const BetonReader::ImageSize size = image_size(reader, i, field);
    sides.push_back(std::min(size.width, size.height));
    facts.is_uniform_size =
        facts.is_uniform_size && size.width == first.width && size.height == first.height;
  }
  const auto median = sides.begin() + static_cast<std::ptrdiff_t>(sides.size() / 2);
  facts.min_px = *std::ranges::min_element(sides);
  std::ranges::nth_element(sides, median);
  facts.median_px = *median;
}

DataFacts facts_of(const BetonReader& reader) {
  DataFacts facts;
  facts.samples = reader.size();
  const std::size_t image = image_field_of(reader);
  const std::size_t label = label_field_of(reader);
  facts.label = reader.fields()[label].name;
  facts.label_is_first = label == reader.first_field(FieldType::integer);
  facts.names = data::class_names_of(reader, label);
  facts.classes = std::max<std::int64_t>(count_classes(reader, label),
                                         static_cast<std::int64_t>(facts.names.size()));
  measure_images(reader, image, facts);
  return facts;
}

/// A value as YAML text.
std::string yaml(const std::string& text) {
  return ConfigNode::from_text(text).flow();
}

/// The settings chosen for the data.
struct Choice {
  bool small = false;
  std::int64_t train_px = 0;
  std::int64_t val_px = 0;
  std::int64_t batch = 0;
  std::int64_t epochs = 0;
};

Choice choose(const DataFacts& train) {
  Choice choice;
  choice.small = train.median_px <= kSmallSidePx;
  if (choice.small) {
    // The network halves the side three times, with convolutions of stride 2. If the side is a
    // multiple of 4, only the third convolution may have to round up.
    choice.train_px = std::max(16, train.median_px / 4 * 4);
    choice.val_px = choice.train_px;
  } else {
    choice.train_px = std::clamp(train.median_px * 3 / 4 / 32 * 32, 64, kLargestTrainPx);
    choice.val_px = (choice.train_px * 7 / 6 + 31) / 32 * 32;
  }
  const auto samples = static_cast<std::int64_t>(train.samples);
  choice.batch =
      std::min(kLargestBatch,
               static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(
                   std::max<std::int64_t>(std::min<std::int64_t>(samples, 8), samples / 16)))));
  const std::int64_t steps = std::max<std::int64_t>(1, samples / choice.batch);
  choice.epochs = std::clamp<std::int64_t>((kTargetSteps + steps - 1) / steps, 8, 40);
  return choice;
}

std::string class_comment(const DataFacts& facts) {
  if (facts.names.empty()) return fmt::format("{} classes", facts.classes);
  std::string text = fmt::format("{} classes: ", facts.classes);
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, facts.names.size()); ++i)
    text += (i > 0 ? ", " : "") + facts.names[i];
  if (facts.names.size() > kShown) text += " ...";
  // Names may contain line ends, which would end a comment.
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

constexpr const char* kSmallModel = R"(model:
  # A small residual network for small images, layer by layer. `precast list models` shows
  # networks to use instead, such as arch: resnet18
  arch: layers
  params:
    layers:
      - conv: {out: 32, stride: 2, bias: false}
      - bn
      - relu
      - conv: {out: 64, stride: 2, bias: false}
      - bn
      - relu
      - residual:
          layers: [conv: {out: 64, bias: false}, bn, relu, conv: {out: 64, bias: false}, bn]
      - relu
      - conv: {out: 128, stride: 2, bias: false}
      - bn
      - relu
      - global_avg_pool
      - flatten
      - linear
)";
constexpr const char* kModel = R"(model:
  # `precast list models` shows the other networks.
  arch: resnet18
)";

std::string data_section(const DataFacts& facts, const std::string& train, const std::string& val) {
  std::string text = fmt::format(
      "data:\n"
      "  # Paths are relative to the folder in which precast is started.\n"
      "  train_dataset: {}\n"
      "  val_dataset: {}\n",
      yaml(train), yaml(val));
  if (!facts.label_is_first) {
    text +=
        fmt::format("  # The labels are not in the first int field of the file.\n  targets: [{}]\n",
                    yaml(facts.label));
  }
  return text + "  # If the file is larger than memory, quasi_random is faster.\n  order: random\n";
}

std::string pipeline_section(const Choice& choice) {
  if (choice.small) {
    return "pipeline:\n"
           "  # Small images are not cropped. Remove horizontal_flip if left and right matter, as "
           "in digits.\n"
           "  train: [whole_image, horizontal_flip]\n"
           "  val: [whole_image]\n";
  }
  return "pipeline:\n"
         "  # Remove horizontal_flip if left and right matter, as in text.\n"
         "  train: [random_resized_crop: {scale: [0.25, 1]}, horizontal_flip]\n"
         "  val: [center_crop: {ratio: 0.875}]\n";
}

std::string recipe_text(const DataFacts& facts, const Choice& choice, const std::string& name,
                        const std::string& train, const std::string& val) {
  const std::string word = shell_word(name);
  std::string text = fmt::format(
      "# {} training images, shorter side {} px{}; {}\n"
      "#   precast train {} --dry-run\n"
      "#   precast train {}\n",
      facts.samples, facts.median_px,
      facts.is_uniform_size ? "" : fmt::format(" (median; minimum {} px)", facts.min_px),
      class_comment(facts), word, word);
  text += data_section(facts, train, val) + pipeline_section(choice);
  text += choice.small ? kSmallModel : kModel;
  text += fmt::format(
      "resolution:\n"
      "  # Side of training images in px. start_ramp and end_ramp make it grow from min_res to "
      "max_res.\n"
      "  min_res: {0}\n"
      "  max_res: {0}\n"
      "lr:\n"
      "  # The rate for 256 samples per step; precast scales it to the batch size.\n"
      "  lr: 0.2\n"
      "  reference_batch_size: 256\n"
      "  lr_schedule_type: cyclic\n"
      "  lr_peak_epoch: 2\n"
      "training:\n"
      "  epochs: {1}\n"
      "  batch_size: {2}\n"
      "  momentum: 0.9\n"
      "  weight_decay: 5e-4\n"
      "  label_smoothing: 0.1\n"
      "validation:\n"
      "  batch_size: {2}\n"
      "  resolution: {3}\n"
      "  # Adds the logits of the mirrored image to those of the image.\n"
      "  lr_tta: true\n"
      "logging:\n"
      "  folder: runs\n"
      "  # 1: evaluate after each epoch; 0: only at the end.\n"
      "  log_level: 1\n",
      choice.train_px, choice.epochs, choice.batch, choice.val_px);
  return text;
}

/// @throws ConfigError if a label means different classes in the two files; DataError if `val` has
/// labels that are negative or not below the number of classes of `train`.
void check_same_classes(const DataFacts& train, const std::string& train_file,
                        const BetonReader& val) {
  const std::size_t label = val.field(train.label);
  const std::string conflict = data::class_conflict(train.names, data::class_names_of(val, label));
  if (!conflict.empty()) {
    throw ConfigError(fmt::format(
        "--val-dataset: expected the classes of --train-dataset, but {}. Write the file "
        "again with the same classes: precast write SOURCE {} --class-names {}",
        conflict, val.path().string(), train_file));
  }
  const std::int64_t classes = count_classes(val, label);
  if (classes > train.classes) {
    throw DataError(fmt::format("{}: expected labels below {}, as in the training set, got {}",
                                val.path().string(), train.classes, classes - 1));
  }
}

/// Warns if the labels are probably not classes, such as a column of ids.
void warn_of_ids(const DataFacts& train, const BetonReader& reader) {
  constexpr std::uint64_t kFewSamples = 20;
  const auto classes = static_cast<std::uint64_t>(train.classes);
  if (!train.names.empty() || train.samples <= kFewSamples || classes <= train.samples / 2) return;
  std::vector<std::string> others;
  for (const data::FieldInfo& field : reader.fields())
    if (field.type == FieldType::integer && field.name != train.label) others.push_back(field.name);
  const std::string hint =
      others.empty()
          ? std::string("write the datasets with a field of labels (for tables: --class-column)")
          : fmt::format(
                "set data.targets in the recipe to the field with the labels "
                "(other int fields: {})",
                fmt::join(others, ", "));
  log_warning("{}: field '{}' has labels of {} for {}. If they are not classes, {}",
              reader.path().string(), train.label, format_count(classes, "class"),
              format_count(train.samples, "sample"), hint);
}

/// The path of the recipe. @throws ConfigError if the file exists, or its folder does not
fs::path recipe_path(const Arguments& arguments) {
  fs::path path = arguments.has("NAME") ? arguments.text("NAME") : "recipe";
  if (path.extension() != ".yaml" && path.extension() != ".yml") path += ".yaml";
  if (fs::exists(path))
    throw ConfigError(fmt::format(
        "new: expected a new file, got {}, which exists. Give another NAME", path.string()));
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw ConfigError(
        fmt::format("new: expected NAME in an existing folder, got {}, which is not a folder",
                    folder.string()));
  return path;
}

}  // namespace

int run_new_recipe(const std::vector<std::string>& args) {
  Arguments arguments("new recipe [NAME] --train-dataset FILE --val-dataset FILE",
                      "Writes NAME.yaml, a recipe with comments. Its network, image sizes, batch "
                      "size and epochs suit these files, and it can be used unchanged.");
  arguments.optional_positional("NAME", "name of the file without .yaml; default: recipe");
  arguments.options().add_options()("train-dataset",
                                    po::value<std::string>()->required()->value_name("FILE"),
                                    ".beton file to train on")(
      "val-dataset", po::value<std::string>()->required()->value_name("FILE"),
      ".beton file to evaluate on");
  arguments.example("precast new recipe mine --train-dataset train.beton --val-dataset val.beton");
  arguments.exit_codes({3});
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const fs::path path = recipe_path(arguments);
  const std::string train = arguments.text("train-dataset");
  const std::string val = arguments.text("val-dataset");
  const BetonReader train_reader(train);
  const BetonReader val_reader(val);
  const DataFacts facts = facts_of(train_reader);
  check_same_classes(facts, train, val_reader);
  warn_of_ids(facts, train_reader);
  const Choice choice = choose(facts);
  write_file(path, recipe_text(facts, choice, path.string(), train, val));
  const std::uint64_t steps = facts.samples / static_cast<std::uint64_t>(choice.batch);
  fmt::print("{}: {}, images of {} px, {} of {}\nnext: precast train {}\n", path.string(),
             format_count(static_cast<std::uint64_t>(facts.classes), "class"), choice.train_px,
             format_count(static_cast<std::uint64_t>(choice.epochs), "epoch"),
             format_count(steps, "step"), shell_word(path.string()));
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
