#pragma once

#include <filesystem>
#include <memory>

#include "data/beton/field_info.h"
#include "data/sources/source.h"

namespace precast::data {

class BetonReader;

/// Opens another .beton file, written by FFCV or precast, with all its fields, to store its samples
/// in another way (mode, quality, resolution, page size, order). JPEGs are passed on as files, so
/// that those that need no change can be stored unchanged. class_names() are those of
/// default_label_field(). @param options how to open the file, with the layouts of custom fields.
/// @param reader an open file; the result shares its memory. @throws IoError, DataError,
/// ConfigError @{
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_beton(const std::filesystem::path& path);
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_beton(const std::filesystem::path& path,
                                                             const BetonOptions& options);
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_beton(const BetonReader& reader);
/// @}
[[nodiscard]] bool is_beton(const std::filesystem::path& path);

}  // namespace precast::data
