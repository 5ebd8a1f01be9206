#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "framework/core/archive/tensor_record.h"

namespace precast::test {

/// One tensor of every dtype, a scalar, an empty tensor and a 4-dimensional tensor. The bytes are
/// the same in every run and remain valid until the program ends.
[[nodiscard]] std::vector<TensorRecord> sample_tensors();

/// The records as text. Two texts are equal if and only if the names, types, shapes and bytes of
/// their records are equal.
[[nodiscard]] std::string dump(std::span<const TensorRecord> records);

/// @return the text of dump() for the tensors in a JSON file that Python wrote.
[[nodiscard]] std::string described(const std::filesystem::path& json);
/// @return the text of dump() for a golden: for the tensors in NAME.json, which describes the file
/// NAME.pt that torch wrote.
[[nodiscard]] std::string golden_dump(const std::string& name);
[[nodiscard]] std::vector<std::byte> golden_file(const std::string& name);
[[nodiscard]] std::vector<std::string> golden_names();

/// Writes a file in the format of torch.save. It contains a dict in which the value of each of
/// `keys` is a dict with one tensor `w` of one float32. The four bytes of `w` are `a` for the first
/// key, `b` for the second, and so on.
void write_training_checkpoint(const std::filesystem::path& path,
                               const std::vector<std::string>& keys);

/// Calls `parse` on `file` cut at every length: each cut must give a CheckpointError.
void expect_refused_at_every_cut(
    std::span<const std::byte> file,
    const std::function<std::string(std::span<const std::byte>)>& parse);

/// Calls `parse` on copies of `file` with one byte changed, for every byte and several changes.
/// At least one call must throw a CheckpointError. All others must return a result that is equal to
/// `intact`, or any result if `intact` is empty.
void expect_refused_or_intact(std::span<const std::byte> file, const std::string& intact,
                              const std::function<std::string(std::span<const std::byte>)>& parse);

}  // namespace precast::test
