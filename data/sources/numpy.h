#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"
#include "framework/core/config/schema.h"

namespace precast::data {

struct PRECAST_API NumpyOptions {
  /// The .npy file with the labels of a .npy SOURCE; empty: the file is found by its name.
  std::string labels;

  void options(Schema& schema);
};

/// Opens NumPy arrays with one row per sample (first axis): a .npz archive, in which each array is
/// a field, or one .npy file, with or without a file of labels next to it. How arrays map to
/// fields:
///
/// | array | field |
/// | --- | --- |
/// | uint8 [n, H, W, 3], [n, H, W, 1] or [n, H, W], named as below | image |
/// | integers or booleans, [n] or [n, 1] | int |
/// | floats of 16 to 64 bits, [n] or [n, 1] | float |
/// | bytes (`S`), [n] | bytes, without trailing zeros |
/// | any other | ndarray of a sample's shape |
///
/// An array of the first kind is an image field if it is the array of a .npy file, or is called
/// image(s), img(s) or x, with or without more words before or after an underscore (`x_train`,
/// `train_images`).
///
/// One image field is named `image`, and one int field whose array is called label(s), y or
/// target(s), in the same way, is named `label`, unless another array already has that name. If
/// several arrays match, the best match is chosen: an array that is called `image` or `label`; else
/// one whose whole name is another of the words above (`y`); else a word with train, test or val
/// (`y_train`); else a word with other words (`y_pos`). Of equally good matches, the first one in
/// the file is chosen. Case does not matter. These two fields come first; all other fields have the
/// names of their arrays, truncated to 16 bytes. The labels of `x_train.npy` are in y_train.npy,
/// those of `train_images.npy` in train_labels.npy, those of any NAME.npy in NAME_labels.npy, or in
/// the file that `options` name. Files are mapped; compressed members of a .npz are unpacked into
/// memory.
/// @throws IoError; DataError naming the arrays; ConfigError if `options` name a file of labels for
/// a .npz
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_numpy(const std::filesystem::path& path,
                                                             const NumpyOptions& options);
[[nodiscard]] bool is_numpy(const std::filesystem::path& path);

}  // namespace precast::data
