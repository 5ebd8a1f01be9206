#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/sources/source.h"
#include "framework/core/config/part.h"
#include "framework/core/export.h"

namespace precast::data {

/// The kinds of datasets that can be read. A kind consists of a part that opens a path, with its
/// own options, and a function that recognises such paths.
class PRECAST_API SourceRegistry : public PartRegistry<Source, const std::filesystem::path&> {
  using Base = PartRegistry<Source, const std::filesystem::path&>;

 public:
  /// Returns whether `path`, which exists, is of this kind, judged by its name and content.
  using Recognizer = std::function<bool(const std::filesystem::path& path)>;

  SourceRegistry() : Base("source") {}

  /// @param open opens a source from a path, or from a path and options (PartRegistry::add()).
  /// @throws std::logic_error if `name` is taken.
  template <typename Open>
  void add(std::string name, std::string help, Recognizer recognizes, Open open) {
    recognizers_.push_back(std::move(recognizes));
    Base::add(std::move(name), std::move(help), open);
  }
  void add_part(std::string name, std::string help, Recognizer recognizes, Factory factory) {
    recognizers_.push_back(std::move(recognizes));
    Base::add_part(std::move(name), std::move(help), std::move(factory));
  }
  /// The recognizer of an entry, by its index in entries().
  [[nodiscard]] const Recognizer& recognizer(std::size_t entry) const {
    return recognizers_.at(entry);
  }
  /// Returns the name of the kind that recognises `path` (the first one registered, if several do),
  /// or an empty string if none does.
  [[nodiscard]] std::string recognize(const std::filesystem::path& path) const;

 private:
  std::vector<Recognizer> recognizers_;
};

/// Registers every kind of dataset that precast reads, in the order in which they are tried: beton,
/// cifar, webdataset, folder, idx, numpy, table, tar.
PRECAST_API void register_sources(SourceRegistry& sources);
/// Makes a registry with the kinds of register_sources().
[[nodiscard]] PRECAST_API SourceRegistry make_sources();

/// Returns the kind of the dataset at `path`. @param path if no file has this name, braces in it
/// denote a list of WebDataset shards (expand_braces): `shards/{000..127}.tar`.
/// @param kind a registered name, or `auto`. @throws ConfigError for an unknown kind, a list of
/// shards with a kind other than `webdataset`, or a URL with a kind other than `beton`; IoError for
/// a missing path; DataError listing the kinds if none fits.
[[nodiscard]] PRECAST_API std::string kind_of_source(const SourceRegistry& sources,
                                                     const std::filesystem::path& path,
                                                     const std::string& kind = "auto");

/// Opens a dataset. @param spec a registered kind and its options. @throws ConfigError for options
/// that the kind does not have; also the exceptions of the kind.
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_source(const SourceRegistry& sources,
                                                              const std::filesystem::path& path,
                                                              const PartSpec& spec);
/// open_source() with the built-in kinds. @throws the errors of kind_of_source() and open_source()
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_source(const std::filesystem::path& path,
                                                              const std::string& kind = "auto",
                                                              const ConfigNode& options = {});

}  // namespace precast::data
