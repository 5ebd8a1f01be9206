#include "tools/commands/preview.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/loader/outputs.h"
#include "data/loader/sample_decoder.h"
#include "data/loader/stored_pixels.h"
#include "data/order/labels.h"
#include "data/order/order.h"
#include "data/transforms/center_crop.h"
#include "data/transforms/fixed_crop.h"
#include "data/transforms/pipeline.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/shared_options.h"
#include "tools/commands/png_grid.h"
#include "tools/commands/sample_choice.h"
#include "tools/plugins/pipeline_options.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

constexpr std::uint64_t kShownByDefault = 16;

/// Declares the options that determine the crop, the size and the processing of images.
void add_view_options(po::options_description& options) {
  const std::string image_size_help =
      std::string(kImageSizeHelp) +
      "; with --config-file, the default is validation.resolution of the recipe, or "
      "resolution.max_res with --train";
  options.add_options()("train", "images as in training; random resized crop and flip")(
      "val", "images as in evaluation; centre crop (the default)")(
      "image-size", po::value<int>()->default_value(160), image_size_help.c_str())(
      "ratio", po::value<double>(),
      "side of the centre crop as a fraction of the image's shorter side")(
      "crop", po::value<std::string>()->value_name("R0:R1,C0:C1"),
      "the same region of every image; rows R0 to R1 - 1 and columns C0 to C1 - 1, in px")(
      "view", po::value<std::string>()->value_name("NAME"),
      "output to show, if the pipeline has several; default: the first");
}

/// Declares the options that select the samples and the epoch to show.
void add_epoch_options(po::options_description& options) {
  options.add_options()(
      "positions", po::value<std::string>()->value_name("LIST"),
      "positions in the epoch's order; 0,3,5, random:N or all; default: the first 16")(
      "order", po::value<std::string>()->default_value("sequential"),
      "order of the samples in an epoch; sequential: as in the file; random: the default of "
      "training; quasi_random: with a window of 1024 pages (in training, the window depends on "
      "data.shuffle_window_mb, the batch size and the memory, so the order can differ)")(
      "seed", po::value<std::int64_t>()->default_value(0), kSeedHelp)(
      "epoch", po::value<std::int64_t>()->default_value(0), "number of the epoch; from 0");
}

Arguments preview_arguments() {
  Arguments arguments(
      "preview FILE.beton -o grid.png|pixels.npy [options]",
      "Writes images as the model sees them, before they are normalised: as a grid (.png), or as "
      "an array of their pixels, uint8 [n, H, W, C] (.npy). With --train, they are exactly those "
      "that `precast train` loads in epoch --epoch if its recipe has the same seed, order (random "
      "or sequential), image size and pipeline, uses all samples (no data.subset, data.filter or "
      "data.repeats), and keeps the default of data.jpeg_dct.");
  arguments.positional("FILE.beton", "the dataset");
  po::options_description& options = arguments.options();
  options.add_options()("output,o", po::value<std::string>()->required()->value_name("FILE"),
                        "file to write; a .png or a .npy");
  add_view_options(options);
  add_pipeline_options(
      options, "plugins, pipeline.train or pipeline.val, model.in_channels, and image size");
  add_epoch_options(options);
  options.add_options()("json", "print the result as JSON; positions, samples and labels");
  add_plugin_option(options);
  add_layout_option(options);
  arguments.example("precast preview train.beton --train -o grid.png");
  arguments.example("precast preview val.beton --image-size 224 --positions all -o pixels.npy");
  arguments.exit_codes({3});
  return arguments;
}

/// Parses numbers. @param separators the characters between them, in order: ":,:" for "3:9,0:4";
/// nullopt: `text` is a list separated by commas. @throws ConfigError naming the option
std::vector<std::uint64_t> parse_numbers(const std::string& text, std::string_view option,
                                         std::string_view expected,
                                         const std::optional<std::string_view>& separators) {
  std::vector<std::uint64_t> numbers;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (true) {
    std::uint64_t number = 0;
    const auto [rest, failure] = std::from_chars(next, end, number);
    numbers.push_back(number);
    const bool complete = rest == end && (!separators || numbers.size() == separators->size() + 1);
    if (failure == std::errc() && complete) return numbers;
    const bool more = failure == std::errc() && rest != end &&
                      (separators ? numbers.size() <= separators->size() &&
                                        *rest == (*separators)[numbers.size() - 1]
                                  : *rest == ',');
    if (!more)
      throw ConfigError(fmt::format("--{}: expected {}, got '{}'", option, expected, text));
    next = rest + 1;
  }
}

data::Rect parse_window(const std::string& text) {
  const auto n = parse_numbers(text, "crop", "R0:R1,C0:C1", ":,:");
  constexpr std::uint64_t kLargest = 65535;
  if (n[1] <= n[0] || n[3] <= n[2] || n[1] > kLargest || n[3] > kLargest) {
    throw ConfigError(
        fmt::format("--crop: expected R0 < R1 and C0 < C1, at most {}, got '{}'", kLargest, text));
  }
  return {static_cast<int>(n[0]), static_cast<int>(n[2]), static_cast<int>(n[1] - n[0]),
          static_cast<int>(n[3] - n[2])};
}

/// @throws ConfigError
void expect_one_of(const Arguments& arguments, const std::string& a, const std::string& b) {
  if (arguments.has(a) && arguments.has(b))
    throw ConfigError(fmt::format("expected --{} or --{}, got both", a, b));
}

/// @throws ConfigError
std::int64_t not_negative(const Arguments& arguments, const std::string& option) {
  const auto value = arguments.get<std::int64_t>(option);
  if (value < 0)
    throw ConfigError(fmt::format("--{}: expected a number >= 0, got {}", option, value));
  return value;
}

/// The image output that --view names, or the pipeline's first image output, processed as in the
/// loader.
/// @throws ConfigError, DataError
data::Output image_of(const data::BetonReader& reader, const data::Pipeline& pipeline,
                      const std::string& view) {
  std::string found;
  for (const data::Output& output : data::resolve_outputs(reader, pipeline, /*normalize=*/false)) {
    if (!data::is<data::ImageOutput>(output)) continue;
    if (view.empty() || view == output.name) return output;
    found += (found.empty() ? "" : ", ") + output.name;
  }
  if (found.empty())
    throw DataError(
        fmt::format("{}: expected a field of images, got none", reader.path().string()));
  throw ConfigError(fmt::format("--view: expected one of the outputs {}, got '{}'", found, view));
}

data::Pipeline choose_pipeline(const Arguments& arguments) {
  const bool train = arguments.has("train");
  expect_one_of(arguments, "train", "val");
  // The crop of --crop or --ratio would replace the random crop of --train.
  expect_one_of(arguments, "train", "crop");
  expect_one_of(arguments, "train", "ratio");
  expect_one_of(arguments, "ratio", "crop");
  if (std::optional<data::Pipeline> chosen = read_pipeline(arguments, train)) return *chosen;
  return train ? data::standard_train_pipeline() : data::standard_val_pipeline();
}

/// Replaces the image's own crop by the crop of --ratio or --crop, if one is given.
void replace_crop(const Arguments& arguments, data::ImagePipeline& image) {
  if (arguments.has("ratio")) {
    const auto ratio = arguments.get<double>("ratio");
    if (!(ratio > 0 && ratio <= 1))
      throw ConfigError(fmt::format("--ratio: expected a number in (0, 1], got {}", ratio));
    image.crop = std::make_shared<data::CenterCrop>(ratio);
  }
  if (arguments.has("crop"))
    image.crop = std::make_shared<data::FixedCrop>(parse_window(arguments.text("crop")));
}

/// The pipeline that the options select, with the crop of --ratio or --crop.
/// @throws ConfigError, IoError
data::Pipeline shown_pipeline(const Arguments& arguments) {
  data::Pipeline pipeline = choose_pipeline(arguments);
  replace_crop(arguments, pipeline.images);
  for (data::OutputSpec& spec : pipeline.outputs) replace_crop(arguments, spec.image);
  return pipeline;
}

/// The positions that --positions lists, in an order of `size` samples. A listed position may be
/// too large; the caller checks this.
/// @throws ConfigError
std::vector<std::uint64_t> chosen_positions(const Arguments& arguments, std::uint64_t size) {
  const std::string choice = arguments.has("positions") ? arguments.text("positions") : "";
  if (choice.starts_with("random:")) return parse_samples("positions", choice, size);
  if (arguments.has("positions") && choice != "all") {
    return parse_numbers(choice, "positions", "numbers separated by commas, or 'all'",
                         std::nullopt);
  }
  std::vector<std::uint64_t> positions(choice == "all" ? size : std::min(size, kShownByDefault));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

/// The samples to show: their ids, and their positions in the epoch's order.
std::vector<data::SampleKey> choose_samples(const Arguments& arguments,
                                            const data::BetonReader& reader, std::uint64_t seed) {
  const std::int64_t epoch = not_negative(arguments, "epoch");
  const std::string& order_name = arguments.get<std::string>("order");
  const auto order = data::make_order(reader, {.name = order_name})->ids(seed, epoch);
  std::vector<data::SampleKey> samples;
  for (const std::uint64_t position : chosen_positions(arguments, order.size())) {
    if (position >= order.size()) {
      throw ConfigError(
          fmt::format("--positions: expected numbers below {}, got {}", order.size(), position));
    }
    samples.push_back({.sample = order[position], .position = position, .epoch = epoch});
  }
  return samples;
}

/// @param shape of one shown image
std::vector<std::uint8_t> decode(const data::BetonReader& reader, const data::Output& shown,
                                 const std::vector<data::SampleKey>& samples, std::uint64_t seed,
                                 int size_px, const data::PixelShape& shape) {
  std::vector<std::uint8_t> pixels(shape.values() * samples.size());
  const auto& image = std::get<data::ImageOutput>(shown.kind);
  data::SampleDecoder decoder(image.pipeline, seed, image.view);
  const data::FieldInfo& field = reader.fields()[shown.field];
  std::vector<std::uint64_t> extents;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint64_t sample = samples[i].sample;
    std::uint8_t* const out = pixels.data() + i * shape.values();
    try {
      if (field.type == data::FieldType::image) {
        decoder.decode(reader.image(sample, shown.field), samples[i], size_px, out);
      } else {
        decoder.decode(data::stored_pixels(field, reader.blob(sample, shown.field), extents),
                       samples[i], size_px, {}, reinterpret_cast<std::byte*>(out));
      }
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: sample {}: {}", reader.path().string(), samples[i].sample,
                                  error.what()));
    }
  }
  return pixels;
}

/// @throws ConfigError
std::filesystem::path output_path(const Arguments& arguments) {
  std::filesystem::path output = arguments.text("output");
  if (output.extension() != ".png" && output.extension() != ".npy") {
    throw ConfigError(
        fmt::format("--output: expected a name ending in .png or .npy, got {}", output.string()));
  }
  return output;
}

/// @throws ConfigError, IoError
int image_side_px(const Arguments& arguments) {
  std::int64_t size_px = arguments.get<int>("image-size");
  if (!arguments.given("image-size"))
    size_px = read_image_size(arguments, arguments.has("train")).value_or(size_px);
  check_range("image-size", size_px, 1, 8192);
  return static_cast<int>(size_px);
}

/// The class (or the label, if classes have no names) and the sample id of each image.
std::vector<Caption> captions_of(const data::BetonReader& reader,
                                 const std::vector<data::SampleKey>& samples) {
  const std::size_t label = data::default_label_field(reader);
  const bool labelled = label < reader.fields().size();
  const std::vector<std::string> names =
      labelled ? data::class_names_of(reader, label) : std::vector<std::string>();
  std::vector<Caption> captions;
  for (const data::SampleKey& sample : samples) {
    Caption& caption = captions.emplace_back();
    if (labelled) {
      const std::int64_t value = reader.integer(sample.sample, label);
      const bool named = value >= 0 && std::cmp_less(value, names.size());
      caption.push_back(named ? names[static_cast<std::size_t>(value)]
                              : fmt::format("label {}", value));
    }
    caption.push_back(fmt::format("#{}", sample.sample));
  }
  return captions;
}

/// @param shape of one of the images
void write_pixels(const std::filesystem::path& output, const std::vector<std::uint8_t>& pixels,
                  const std::vector<Caption>& captions, const data::PixelShape& shape) {
  if (output.extension() == ".png" && shape.channels == 1) {
    std::vector<std::uint8_t> rgb;
    rgb.reserve(3 * pixels.size());
    for (const std::uint8_t value : pixels) rgb.insert(rgb.end(), 3, value);
    return write_png_grid(output, rgb, shape.height, captions);
  }
  if (output.extension() == ".png") return write_png_grid(output, pixels, shape.height, captions);
  const std::int64_t sides[] = {static_cast<std::int64_t>(captions.size()), shape.height,
                                shape.width, shape.channels};
  write_npy(output, DType::u8, sides, std::as_bytes(std::span(pixels)));
}

void print_samples(const data::BetonReader& reader, const std::vector<data::SampleKey>& samples) {
  const std::size_t label = data::default_label_field(reader);
  auto listed = nlohmann::ordered_json::array();
  for (const data::SampleKey& sample : samples) {
    nlohmann::ordered_json entry = {{"position", sample.position}, {"sample", sample.sample}};
    if (label < reader.fields().size()) entry["label"] = reader.integer(sample.sample, label);
    listed.push_back(entry);
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"samples", listed}}.dump());
}

}  // namespace

int run_preview(const std::vector<std::string>& args) {
  Arguments arguments = preview_arguments();
  if (!arguments.parse(args)) return 0;
  const std::filesystem::path output = output_path(arguments);
  const int size_px = image_side_px(arguments);
  const data::Pipeline pipeline = shown_pipeline(arguments);
  const data::BetonReader reader(arguments.text("FILE.beton"), data::BlobAccess::mapped,
                                 read_layouts(arguments));
  const data::Output shown =
      image_of(reader, pipeline, arguments.has("view") ? arguments.text("view") : "");
  const data::PixelShape shape =
      std::get<data::ImageOutput>(shown.kind).pipeline.output({size_px, size_px, 3});
  if (output.extension() == ".png" && shape.height != shape.width) {
    throw ConfigError(
        fmt::format("--output: expected a .npy for images of {} x {} px, got {}. A .png shows only "
                    "square images",
                    shape.height, shape.width, output.string()));
  }
  const auto seed = static_cast<std::uint64_t>(not_negative(arguments, "seed"));
  const auto samples = choose_samples(arguments, reader, seed);
  const auto pixels = decode(reader, shown, samples, seed, size_px, shape);
  write_pixels(output, pixels, captions_of(reader, samples), shape);
  if (arguments.has("json")) print_samples(reader, samples);
  log_info("{}: {} of {} x {} px", output.string(), format_count(samples.size(), "image"),
           shape.height, shape.width);
  return 0;
}

}  // namespace precast::tools
