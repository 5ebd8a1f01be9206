#include "data/loader/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "data/beton/layout.h"
#include "data/loader/sample_bytes.h"
#include "data/loader/stored_pixels.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

struct NumpyType {
  std::string_view name;
  ElementType type;
};
constexpr std::array kNumpyTypes = {
    NumpyType{"|u1", ElementType::u8},  NumpyType{"|i1", ElementType::i8},
    NumpyType{"<i2", ElementType::i16}, NumpyType{"<u2", ElementType::u16},
    NumpyType{"<i4", ElementType::i32}, NumpyType{"<u4", ElementType::u32},
    NumpyType{"<i8", ElementType::i64}, NumpyType{"<u8", ElementType::u64},
    NumpyType{"<f2", ElementType::f16}, NumpyType{"<f4", ElementType::f32},
    NumpyType{"<f8", ElementType::f64}, NumpyType{"|b1", ElementType::boolean},
};

/// The field's type for messages, such as `int`, `ndarray <f4` or `bytes ragged <f4`.
std::string type_name(const FieldInfo& field) {
  std::string name(field_type_name(field.type));
  for (const std::string_view more :
       {tag_kind_name(field.tag.kind), std::string_view(field.tag.dtype),
        std::string_view(field.dtype)})
    if (!more.empty() && more != name) name += fmt::format(" {}", more);
  return name;
}

/// Whether the field has type bytes (with or without a tag) or JSON, so that its values can differ
/// in size. `pad_to` applies only to such fields.
bool has_variable_size(const FieldInfo& field) {
  return field.type == FieldType::bytes || field.type == FieldType::json;
}

std::uint64_t max_value_bytes(const BetonReader& reader, std::size_t field) {
  std::uint64_t largest = 0;
  for (std::uint64_t i = 0; i < reader.size(); ++i)
    largest = std::max(largest, reader.blob_bytes(i, field));
  return largest;
}

/// The shape of the first value of a pixels field, [height, width, channels].
std::vector<std::uint64_t> first_extents(const BetonReader& reader, std::size_t field) {
  DirectWindow direct;
  const FileWindow window = direct.read(reader, range_of(reader, {field}, 0));
  std::vector<std::uint64_t> extents;
  try {
    (void)shaped_elements(reader.fields()[field].tag, reader.blob(0, field, window), extents);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: sample 0, field '{}': {}", reader.path().string(),
                                reader.fields()[field].name, error.what()));
  }
  return extents;
}

/// Finds the field of each output, and sets the properties of the output that depend on the field.
class Resolver {
 public:
  Resolver(const BetonReader& reader, bool normalize) : reader_(reader), normalize_(normalize) {}

  /// The outputs of a pipeline that lists none (resolve_outputs()).
  std::vector<Output> all(const ImagePipeline& images) {
    std::vector<Output> outputs;
    const bool has_images = reader_.first_field(FieldType::image) < reader_.fields().size();
    for (std::size_t f = 0; f < reader_.fields().size(); ++f) {
      if (has_images && has_variable_size(reader_.fields()[f])) continue;
      Output output{.name = reader_.fields()[f].name, .field = f};
      OutputSpec spec{.name = output.name,
                      .image = images,
                      .key = output.name,
                      .origin = {.source = "pipeline"}};
      const FieldTag& tag = reader_.fields()[f].tag;
      if (tag.kind == FieldTag::Kind::pixels && tag.dtype == "|u1")
        spec.content = OutputSpec::Content::image;
      if (fill_in(spec, output)) outputs.push_back(std::move(output));
    }
    diagnostics_.throw_if_errors();
    if (outputs.empty()) {
      throw ConfigError(
          fmt::format("{}: expected a field of a type that a batch can hold, got only {}",
                      reader_.path().string(), unusable_fields(reader_)));
    }
    return outputs;
  }

  std::vector<Output> listed(const std::vector<OutputSpec>& specs) {
    std::vector<Output> outputs;
    bool image_seen = false;
    for (const OutputSpec& spec : specs) {
      Output output{.name = spec.name};
      failed_ = false;
      if (!resolve(spec, specs, output)) continue;
      if (auto* const image = std::get_if<ImageOutput>(&output.kind))
        if (std::exchange(image_seen, true)) image->view = spec.name;
      outputs.push_back(std::move(output));
    }
    for (std::size_t i = 0; diagnostics_.errors().empty() && i < outputs.size(); ++i) {
      if (auto* const mask = std::get_if<MaskOutput>(&outputs[i].kind))
        follow(specs[i], outputs, *mask);
    }
    diagnostics_.throw_if_errors();
    return outputs;
  }

  /// Adds an output with the lengths after each BytesOutput, and one with the extents after each
  /// ShapedOutput.
  static std::vector<Output> with_extents(const BetonReader& reader,
                                          const std::vector<Output>& outputs) {
    std::vector<Output> all;
    for (const Output& output : outputs) {
      all.push_back(output);
      if (is<BytesOutput>(output)) {
        all.push_back(
            {.name = output.name + ".lengths", .field = output.field, .kind = LengthOutput{}});
      } else if (is<ShapedOutput>(output)) {
        const FieldTag& tag = reader.fields()[output.field].tag;
        const std::size_t dimensions = tag.kind == FieldTag::Kind::pixels ? 2 : tag.dims;
        all.push_back({.name = output.name + ".extents",
                       .field = output.field,
                       .kind = ExtentsOutput{.dimensions = dimensions}});
      }
    }
    return all;
  }

 private:
  bool fail(const OutputSpec& spec, const std::string& message) {
    failed_ = true;
    diagnostics_.error(spec.origin, spec.key,
                       fmt::format("{} ({})", message, reader_.path().string()));
    return false;
  }

  bool find(const OutputSpec& spec, const std::string& name, std::size_t& field) {
    std::vector<std::string> names;
    for (const FieldInfo& info : reader_.fields()) names.push_back(info.name);
    const auto found = std::ranges::find(names, name);
    field = static_cast<std::size_t>(found - names.begin());
    if (found != names.end()) return true;
    return fail(spec, fmt::format("expected the name of a field, got '{}'. {}", name,
                                  suggest(name, names)));
  }

  bool resolve(const OutputSpec& spec, const std::vector<OutputSpec>& specs, Output& output) {
    if (spec.field == kSampleId) {
      output.kind = SampleIdOutput{};
      output.type = spec.type.value_or(ElementType::i64);
      return check_number_type(spec, output.type);
    }
    if (!find(spec, spec.field, output.field)) return false;
    const FieldInfo& info = reader_.fields()[output.field];
    if (!spec.pad_to.empty() && !has_variable_size(info)) {
      return fail(spec, fmt::format("pad_to: expected a field of bytes, JSON, pixels or ragged "
                                    "arrays, got '{}' of type {}",
                                    info.name, type_name(info)));
    }
    if (!spec.pad_to.empty() && spec.content == OutputSpec::Content::image)
      return fail(spec,
                  "pad_to: expected no image transforms, because they determine the size, got both "
                  "pad_to and transforms");
    if (!spec.geometry_of.empty()) return fill_in_mask(spec, specs, output);
    const bool is_image = info.type == FieldType::image || holds_pixels(info);
    const bool is_integer = info.type == FieldType::integer;
    if ((spec.content == OutputSpec::Content::image && !is_image) ||
        (spec.content == OutputSpec::Content::number && !is_integer)) {
      return fail(spec,
                  fmt::format("expected {} field, got '{}' of type {}",
                              spec.content == OutputSpec::Content::image ? "an image" : "an int",
                              info.name, type_name(info)));
    }
    if (fill_in(spec, output)) return true;
    if (!failed_) {
      fail(spec, fmt::format("expected a field that {}, got '{}' of type {}{}",
                             spec.type ? "can be converted" : "a batch can hold", info.name,
                             type_name(info), spec.type ? ". Leave out `convert`" : ""));
    }
    return false;
  }

  bool check_number_type(const OutputSpec& spec, ElementType type) {
    if (type == ElementType::i32 || type == ElementType::i64 || type == ElementType::f32 ||
        type == ElementType::f64) {
      return true;
    }
    return fail(spec, fmt::format("convert: expected i32, i64, f32 or f64 for a number, got {}",
                                  element_type_name(type)));
  }

  /// Sets the output's type and kind. @return false if batches cannot hold the field, if it cannot
  /// be converted to spec.type, or after fail().
  bool fill_in(const OutputSpec& spec, Output& output) {
    const FieldInfo& info = reader_.fields()[output.field];
    if (spec.content == OutputSpec::Content::image) return fill_in_image(spec, output);
    switch (info.type) {
      case FieldType::image:
        return fill_in_image(spec, output);
      case FieldType::integer:
        output.kind = IntegerOutput{.labels = spec.labels};
        output.type = spec.type.value_or(ElementType::i64);
        return check_number_type(spec, output.type);
      case FieldType::floating:
        output.kind = FloatingOutput{};
        output.type = spec.type.value_or(ElementType::f64);
        return check_number_type(spec, output.type);
      case FieldType::ndarray:
      case FieldType::tensor:
        return fill_in_array(spec, output);
      case FieldType::bytes:
        if (info.tag.kind != FieldTag::Kind::none) return fill_in_shaped(spec, output);
        return fill_in_bytes(spec, output);
      case FieldType::json:
        return fill_in_bytes(spec, output);
      default:
        return false;
    }
  }

  bool check_dimensions(const OutputSpec& spec, std::size_t expected) {
    if (spec.pad_to.empty() || spec.pad_to.size() == expected) return true;
    return fail(spec,
                fmt::format("pad_to: expected {} numbers, got {}", expected, spec.pad_to.size()));
  }

  bool fill_in_array(const OutputSpec& spec, Output& output) {
    const FieldInfo& info = reader_.fields()[output.field];
    const std::optional<ElementType> type = element_type_of(info.dtype);
    if (!type || spec.type.value_or(*type) != *type) return false;
    output.type = *type;
    output.kind =
        ArrayOutput{.shape = {info.shape.begin(), info.shape.end()}, .bytes = info.value_bytes};
    return true;
  }

  bool fill_in_bytes(const OutputSpec& spec, Output& output) {
    if (spec.type.value_or(ElementType::u8) != ElementType::u8) return false;
    if (!check_dimensions(spec, 1)) return false;
    output.type = ElementType::u8;
    BytesOutput bytes{.packed = spec.pad_to.empty()};
    bytes.capacity = bytes.packed
                         ? static_cast<std::int64_t>(max_value_bytes(reader_, output.field))
                         : spec.pad_to[0];
    output.kind = bytes;
    return true;
  }

  bool fill_in_shaped(const OutputSpec& spec, Output& output) {
    const FieldTag& tag = reader_.fields()[output.field].tag;
    const bool pixels = tag.kind == FieldTag::Kind::pixels;
    const std::optional<ElementType> type = element_type_of(tag.dtype);
    if (!type || spec.type.value_or(*type) != *type) return false;
    if (!check_dimensions(spec, pixels ? 2 : tag.dims)) return false;
    output.type = *type;
    ShapedOutput shaped{.shape = spec.pad_to};
    if (pixels && spec.pad_to.empty()) {
      const std::vector<std::uint64_t> first = first_extents(reader_, output.field);
      shaped = {.shape = {first.begin(), first.end()}, .size = ShapedOutput::Size::exact};
    } else if (pixels) {
      shaped.shape.push_back(static_cast<std::int64_t>(tag.channels));
    } else if (spec.pad_to.empty()) {
      const std::uint64_t largest = max_value_bytes(reader_, output.field);
      const std::uint64_t header = 8 * tag.dims;
      const std::uint64_t elements = (largest - std::min(largest, header)) / element_size(*type);
      shaped = {.shape = {static_cast<std::int64_t>(elements)}, .size = ShapedOutput::Size::packed};
    }
    output.kind = std::move(shaped);
    return true;
  }

  bool fill_in_image(const OutputSpec& spec, Output& output) {
    ImageOutput image{.pipeline = spec.image};
    ImagePipeline& pipeline = image.pipeline;
    // From `convert` alone, the parser cannot tell that the field is an image; it then stores the
    // type only in `spec.type`.
    if (spec.type) pipeline.type = spec.type;
    const bool chosen = pipeline.type.has_value();
    output.type = pipeline.type.value_or(normalize_ ? ElementType::f32 : ElementType::u8);
    if (output.type == ElementType::i32 || output.type == ElementType::i64 ||
        output.type == ElementType::f64) {
      return fail(spec, fmt::format("convert: expected u8, f32, f16 or bf16 for an image, got {}",
                                    element_type_name(output.type)));
    }
    image.channels_first = pipeline.channels_first && (chosen || normalize_);
    if (chosen ? pipeline.normalized : normalize_)
      image.normalize = std::make_shared<Normalize>(pipeline.normalize);
    output.kind = std::move(image);
    return true;
  }

  bool fill_in_mask(const OutputSpec& spec, const std::vector<OutputSpec>& specs, Output& output) {
    const FieldInfo& info = reader_.fields()[output.field];
    const bool array = info.type == FieldType::ndarray || info.type == FieldType::tensor;
    const bool grey = info.tag.kind == FieldTag::Kind::pixels && info.tag.dtype == "|u1" &&
                      info.tag.channels == 1;
    const bool plane = grey || (array && info.shape.size() == 2 && info.dtype == "|u1");
    if (info.type != FieldType::image && !plane) {
      const std::string more =
          array ? fmt::format(" [{}]", fmt::join(info.shape, ", "))
          : info.tag.kind == FieldTag::Kind::pixels
              ? fmt::format(" with {}", format_count(info.tag.channels, "channel"))
              : std::string();
      return fail(spec,
                  fmt::format("expected a mask: an image, a u8 (|u1) ndarray or tensor [H, W], "
                              "or u8 pixels with 1 channel, got '{}' of type {}{}",
                              info.name, type_name(info), more));
    }
    MaskOutput mask{.fill = spec.fill, .channels = plane ? 1 : 3};
    output.type = spec.type.value_or(ElementType::u8);
    if (plane && !grey) mask.sides.assign(info.shape.begin(), info.shape.end());
    if (output.type == ElementType::f16 || output.type == ElementType::bf16) {
      return fail(spec, fmt::format("convert: expected u8, i32, i64, f32 or f64 for a mask, got {}",
                                    element_type_name(output.type)));
    }
    const auto image = std::ranges::find(specs, spec.geometry_of, &OutputSpec::name);
    if (image == specs.end() || !find(*image, image->field, mask.image_field)) return false;
    output.kind = std::move(mask);
    return true;
  }

  void follow(const OutputSpec& spec, const std::vector<Output>& outputs, MaskOutput& mask) {
    const auto found = std::ranges::find(outputs, spec.geometry_of, &Output::name);
    const auto* const image =
        found == outputs.end() ? nullptr : std::get_if<ImageOutput>(&found->kind);
    if (image == nullptr) {
      fail(spec, fmt::format("geometry_of: expected an output that is an image, got '{}'",
                             spec.geometry_of));
      return;
    }
    mask.pipeline = image->pipeline;
    mask.view = image->view;
  }

  const BetonReader& reader_;
  bool normalize_;
  Diagnostics diagnostics_;
  /// Whether a problem with the current output has been reported.
  bool failed_ = false;
};

}  // namespace

bool is_packed(const Output& output) {
  if (const auto* const bytes = std::get_if<BytesOutput>(&output.kind)) return bytes->packed;
  const auto* const shaped = std::get_if<ShapedOutput>(&output.kind);
  return shaped != nullptr && shaped->size == ShapedOutput::Size::packed;
}

std::vector<Output> resolve_outputs(const BetonReader& reader, const Pipeline& pipeline,
                                    bool normalize) {
  Resolver resolver(reader, normalize);
  return Resolver::with_extents(reader, pipeline.outputs.empty()
                                            ? resolver.all(pipeline.images)
                                            : resolver.listed(pipeline.outputs));
}

std::string unusable_fields(const BetonReader& reader) {
  std::string list;
  for (const FieldInfo& field : reader.fields()) {
    const std::string& dtype = field.tag.dtype.empty() ? field.dtype : field.tag.dtype;
    if (field.type != FieldType::custom && (dtype.empty() || element_type_of(dtype))) continue;
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", field.name, type_name(field));
  }
  return list;
}

std::optional<ElementType> element_type_of(const std::string& dtype) {
  const auto* const known = std::ranges::find(kNumpyTypes, dtype, &NumpyType::name);
  if (known == kNumpyTypes.end()) return std::nullopt;
  return known->type;
}

}  // namespace precast::data
