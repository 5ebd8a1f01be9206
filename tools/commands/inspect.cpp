#include "tools/commands/inspect.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "data/beton/file_info.h"
#include "data/beton/layout.h"
#include "data/beton/reader.h"
#include "data/order/pages.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/commands/inspect_export.h"
#include "tools/commands/inspect_histogram.h"
#include "tools/commands/inspect_order.h"
#include "tools/commands/inspect_values.h"
#include "tools/commands/sample_choice.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using data::BetonReader;
using data::FieldType;
using Json = nlohmann::ordered_json;

/// The type and the layout of a field, from its descriptor.
Json describe_format(const data::FieldInfo& field) {
  Json report = {{"name", field.name},
                 {"type", data::field_type_name(field.type)},
                 {"type_id", static_cast<int>(field.type)},
                 {"metadata_offset", field.offset}};
  if (!field.dtype.empty()) {
    report["dtype"] = field.dtype;
    report["shape"] = field.shape;
  }
  if (field.tag.kind == data::FieldTag::Kind::pixels) {
    report["content"] = fmt::format("pixels, {} x {}", field.tag.channels, field.tag.dtype);
  } else if (field.tag.kind == data::FieldTag::Kind::ragged) {
    report["content"] = fmt::format("ragged, {} dimensions of {}", field.tag.dims, field.tag.dtype);
  } else if (field.type == FieldType::custom) {
    report["content"] =
        fmt::format("metadata {} bytes, aligned to {}", field.layout.bytes, field.layout.alignment);
  }
  return report;
}

/// Describes the file and its fields. @param with_values also summarises the values of each field
/// over all samples. @param with_labels also lists every value of the int fields.
Json describe(const BetonReader& reader, bool with_values, bool with_labels) {
  const data::BetonHeader& header = reader.header();
  Json report = {{"file", reader.path().string()},      {"bytes", reader.file_bytes()},
                 {"version", header.version},           {"samples", header.num_samples},
                 {"page_size", header.page_bytes},      {"pages", data::count_pages(reader)},
                 {"table_offset", header.table_offset}, {"fields", Json::array()}};
  for (std::size_t i = 0; i < reader.fields().size(); ++i) {
    Json field = describe_format(reader.fields()[i]);
    if (with_values) field.update(describe_values(reader, i, with_labels));
    report["fields"].push_back(std::move(field));
  }
  return report;
}

std::string range_text(const Json& range) {
  return fmt::format("{} / {:.1f} / {}", range["min"].get<std::int64_t>(),
                     range["mean"].get<double>(), range["max"].get<std::int64_t>());
}

std::string floats_text(const Json& field) {
  const auto text = [](const Json& number) {
    return number.is_string() ? number.get<std::string>() : number.dump();
  };
  std::string range = "no numbers";
  if (field.contains("min"))
    range = fmt::format("from {} to {}", text(field["min"]), text(field["max"]));
  return field.contains("nan") ? fmt::format("{}, {} nan", range, field["nan"].get<std::uint64_t>())
                               : range;
}

std::string content_text(const Json& field) {
  return field.contains("content") ? field["content"].get<std::string>() + "," : "";
}

std::string array_text(const Json& field) {
  if (!field.contains("dtype")) return {};
  return fmt::format("{} {},", field["dtype"].get<std::string>(), field["shape"].dump());
}

/// @param report of the file, which contains `field`.
void print_field(const Json& field, const Json& report) {
  const auto samples = report["samples"].get<double>();
  const auto total = report["field_bytes"].find(field["name"].get<std::string>());
  const std::string in_all = total == report["field_bytes"].end()
                                 ? ""
                                 : fmt::format(", {} in all", format_bytes(total->get<double>()));
  fmt::print("{:<16} {:<8}", field["name"].get<std::string>(), field["type"].get<std::string>());
  if (field.contains("jpg")) {
    const double jpg = field["jpg"].get<double>();
    fmt::print(" {:.0f} jpg ({:.1f} %), {:.0f} raw\n", jpg, 100 * jpg / samples, samples - jpg);
    fmt::print("{:<25} width {}, height {}, bytes {} (min / mean / max){}\n", "",
               range_text(field["width"]), range_text(field["height"]),
               range_text(field["blob_bytes"]), in_all);
  } else if (field.contains("distinct")) {
    fmt::print(" {} from {} to {}; samples per value: {} (min / mean / max)\n",
               format_count(field["distinct"].get<std::uint64_t>(), "value"),
               field["min"].get<std::int64_t>(), field["max"].get<std::int64_t>(),
               range_text(field["samples_per_value"]));
  } else if (field.contains("blob_bytes")) {
    fmt::print(" {}{} bytes {} (min / mean / max){}\n", content_text(field), array_text(field),
               range_text(field["blob_bytes"]), in_all);
  } else {
    fmt::print(" {}\n", floats_text(field));
  }
}

void print_report(const Json& report) {
  fmt::print("{}: .beton version {}, {}, {}, {} of {}\n", report["file"].get<std::string>(),
             report["version"].get<int>(), format_bytes(report["bytes"].get<double>()),
             format_count(report["samples"].get<std::uint64_t>(), "sample"),
             format_count(report["pages"].get<std::uint64_t>(), "page"),
             format_bytes(report["page_size"].get<double>()));
  for (const Json& field : report["fields"]) print_field(field, report);
}

/// Adds facts to `value`: for a custom field, its metadata and the allocations that might belong to
/// it; for a tagged field, the shape of the value.
void describe_content(const BetonReader& reader, std::uint64_t sample, std::size_t index,
                      Json& value) {
  const data::FieldInfo& field = reader.fields()[index];
  if (field.type == FieldType::custom) {
    std::string hex;
    for (const std::byte byte : reader.metadata(sample, index))
      hex += fmt::format("{:02x}", std::to_integer<int>(byte));
    value["metadata"] = hex;
    for (const data::Allocation& blob : reader.unclaimed(sample))
      value["blobs"].push_back({{"offset", blob.pointer}, {"bytes", blob.size}});
  } else if (field.tag.kind != data::FieldTag::Kind::none) {
    std::vector<std::uint64_t> extents;
    (void)data::shaped_elements(field.tag, reader.blob(sample, index), extents);
    value["shape"] = extents;
  }
}

/// The JSON key of a field. The key `sample` contains the sample's id, so a field with that name
/// has another key, which is longer than any field name can be.
std::string key_of(const data::FieldInfo& field) {
  return field.name == "sample" ? "field_named_sample" : field.name;
}
static_assert(std::string_view("field_named_sample").size() > data::kFieldNameBytes);

/// The JSON key for the class names of a sample's labels. It is also longer than any field name can
/// be.
constexpr const char* kClassNamesKey = "class_names_by_field";
static_assert(std::string_view(kClassNamesKey).size() > data::kFieldNameBytes);

/// The value itself if it is a number; otherwise its position and size in the file and, depending
/// on the type, its metadata, shape, mode, width and height.
Json describe_value(const BetonReader& reader, std::uint64_t sample, std::size_t index) {
  const data::FieldInfo& field = reader.fields()[index];
  if (field.type == FieldType::integer) return reader.integer(sample, index);
  if (field.type == FieldType::floating) return number_json(reader.floating(sample, index));
  Json value;
  if (field.has_pointer())
    value = {{"offset", reader.blob_offset(sample, index)},
             {"bytes", reader.blob_bytes(sample, index)}};
  describe_content(reader, sample, index, value);
  if (field.type == FieldType::image) {
    const data::ImageRecord image = reader.image(sample, index);
    value["mode"] = image.mode == data::ImageMode::jpg ? "jpg" : "raw";
    value["width"] = image.width;
    value["height"] = image.height;
  }
  return value;
}

Json describe_sample(const BetonReader& reader, std::uint64_t sample) {
  Json report = {{"sample", sample}};
  for (std::size_t i = 0; i < reader.fields().size(); ++i)
    report[key_of(reader.fields()[i])] = describe_value(reader, sample, i);
  for (std::size_t i = 0; i < reader.fields().size(); ++i) {
    if (reader.fields()[i].type != FieldType::integer) continue;
    const std::vector<std::string> names = data::class_names_of(reader, i);
    const std::int64_t label = reader.integer(sample, i);
    if (label >= 0 && std::cmp_less(label, names.size()))
      report[kClassNamesKey][reader.fields()[i].name] = names[static_cast<std::size_t>(label)];
  }
  return report;
}

/// Writes one field of the sample to a file, or all fields that are not numbers into a folder.
/// @param choice name of the field; empty: determined by `out`.
void export_values(const BetonReader& reader, std::uint64_t sample, const std::string& out,
                   const std::string& choice) {
  if (!choice.empty()) return export_field(reader, sample, reader.field(choice), out);
  const std::filesystem::path path(out);
  if (!path.has_extension() || std::filesystem::is_directory(path))
    return export_sample(reader, sample, path);
  const std::size_t field = reader.first_field(FieldType::image);
  if (field == reader.fields().size()) {
    throw ConfigError(
        fmt::format("--output: expected --field NAME as well, or a folder: {} has no image field",
                    reader.path().string()));
  }
  export_field(reader, sample, field, out);
}

/// @param choice the field to write with --output; empty: determined by the file name.
void show_sample(const BetonReader& reader, const Arguments& arguments, const std::string& choice) {
  const auto sample = arguments.get<std::int64_t>("sample");
  if (sample < 0 || static_cast<std::uint64_t>(sample) >= reader.size()) {
    throw ConfigError(fmt::format("--sample: expected 0 to {}, got {}", reader.size() - 1, sample));
  }
  const auto index = static_cast<std::uint64_t>(sample);
  const Json report = describe_sample(reader, index);
  if (arguments.has("output")) {
    export_values(reader, index, arguments.text("output"), choice);
  }
  const int indent = arguments.get<bool>("json") ? 2 : -1;
  fmt::print("{}\n", dump_json(report, indent));
}

/// @throws ConfigError if an option for --order was given but has no effect.
void check_order_options(const Arguments& arguments) {
  for (const char* option : {"global-batch-size", "shuffle-window-mb", "seed"}) {
    if (arguments.given(option) && !arguments.has("order"))
      throw ConfigError(fmt::format(
          "--{}: expected --order NAME as well, because only an order uses it", option));
  }
  if (arguments.given("shuffle-window-mb") && arguments.text("order") != "quasi_random")
    throw ConfigError(fmt::format("--shuffle-window-mb: expected --order quasi_random, got {}",
                                  arguments.text("order")));
}

/// @throws ConfigError if an option is given without the option that it needs, or together with one
/// that excludes it.
void check_option_combinations(const Arguments& arguments) {
  check_order_options(arguments);
  if (arguments.has("output") && !arguments.has("sample"))
    throw ConfigError(
        "--output: expected --sample N as well, because it writes the values of one sample");
  if (arguments.has("order") && arguments.has("sample"))
    throw ConfigError("expected --order or --sample, got both");
  if (arguments.given("label-field") && arguments.has("sample"))
    throw ConfigError("expected --label-field or --sample, got both");
  for (const char* option : {"where", "samples", "classes"}) {
    if (!arguments.has(option)) continue;
    for (const char* other : {"sample", "order"})
      if (arguments.has(other))
        throw ConfigError(fmt::format("expected --{} or --{}, got both", option, other));
    if (arguments.get<bool>("label-values"))
      throw ConfigError(fmt::format("expected --{} or --label-values, got both", option));
  }
  if (!arguments.get<bool>("label-values")) return;
  if (!arguments.get<bool>("json"))
    throw ConfigError(
        "--label-values: expected --json as well, because the values are printed only as JSON");
  if (arguments.has("sample")) throw ConfigError("expected --label-values or --sample, got both");
}

/// The options that concern fields: the layouts of custom fields and, with --output, the field to
/// write.
struct FieldChoice {
  data::BetonOptions layouts;
  /// The field to write; empty: determined by the file name.
  std::string written;
};

/// @throws ConfigError
FieldChoice read_field_choice(const Arguments& arguments) {
  FieldChoice choice{.layouts = read_layouts(arguments), .written = {}};
  if (!arguments.has("field")) return choice;
  if (!arguments.has("output"))
    throw ConfigError(
        "--field: expected --output FILE as well, got none. --field names the field to write");
  choice.written = arguments.text("field");
  return choice;
}

void show_order(const BetonReader& reader, const Arguments& arguments) {
  const Json report = describe_order(reader, arguments);
  arguments.get<bool>("json") ? print_json(report) : print_order(report);
}

/// Shows the file, or a summary of the chosen samples.
void show_file(const BetonReader& reader, const Arguments& arguments) {
  const auto chosen = choose_samples(arguments, reader);
  Json report = describe(reader, !chosen, arguments.get<bool>("label-values"));
  report.update(describe_chosen(arguments, reader, chosen));
  if (arguments.get<bool>("json")) return print_json(report);
  if (!report.contains("ids")) print_report(report);
  print_chosen(report);
}

Arguments inspect_arguments() {
  Arguments arguments(
      "inspect FILE.beton [options]",
      "Shows the contents of a .beton file, after checking every size and pointer in it. With "
      "--where, --samples or --classes: the matching samples and their distribution.");
  arguments.positional("FILE.beton", "the file to read");
  arguments.options().add_options()("json", po::bool_switch(), kJsonHelp)(
      "label-values", po::bool_switch(), "all values of every int field; with --json")(
      "sample", po::value<std::int64_t>(),
      "show one sample, by its id; a field called sample is shown as field_named_sample")(
      "output,o", po::value<std::string>()->value_name("FILE"),
      "file to write; with --sample: its image as .jpg (of quality 95 if it is stored as pixels), "
      ".png, .npy ([H, W, 3] uint8) or .ppm, or a folder for all its fields that are not numbers")(
      "field", po::value<std::string>()->value_name("NAME"),
      "field that --output writes; an array as .npy; bytes, JSON and custom fields as a file of "
      "any name");
  add_layout_option(arguments.options());
  add_choice_options(arguments);
  add_order_options(arguments);
  arguments.example("precast inspect train.beton --where 'label in (0, 5) and width > 300'");
  arguments.example("precast inspect train.beton --sample 3 --output image.jpg");
  arguments.exit_codes({3});
  return arguments;
}

}  // namespace

int run_inspect(const std::vector<std::string>& args) {
  Arguments arguments = inspect_arguments();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  check_option_combinations(arguments);
  const FieldChoice choice = read_field_choice(arguments);
  const BetonReader reader(arguments.text("FILE.beton"), data::BlobAccess::mapped, choice.layouts);
  if (arguments.has("sample")) {
    show_sample(reader, arguments, choice.written);
  } else if (arguments.has("order")) {
    show_order(reader, arguments);
  } else {
    show_file(reader, arguments);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
