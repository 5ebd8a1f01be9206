#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace precast::fuzz {

/// The bytes passed to a target, which must handle any bytes.
using Input = std::span<const std::byte>;

/// Each target passes the bytes to the parsers of one format, reads the result, and checks its
/// invariants with require(). An exception derived from Error is a correct result. Anything else is
/// a finding: another exception, a crash, a leak, more than five seconds, more than 512 MiB. @{
void safetensors(Input input);
void pickle(Input input);
void torch_zip(Input input);
void npy(Input input);
void manifest(Input input);
void recipe(Input input);
void ring(Input input);
void outside_message(Input input);
void beton(Input input);
void jpeg(Input input);
void jpeg_lanes(Input input);
void jpeg_sidecar(Input input);
void sums(Input input);
void delimited(Input input);
void source(Input input);
void tar(Input input);
void image_file(Input input);
void filter(Input input);
void sample_list(Input input);
void weights_spec(Input input);
/// @}

/// Every target under its name, which is also its folder in tests/corpus.
[[nodiscard]] const std::map<std::string, std::function<void(Input)>, std::less<>>& targets();

/// Runs one target. An exception derived from Error is a correct result and is ignored.
void run(const std::function<void(Input)>& target, Input input);

/// Reports to the fuzzer that this message was reached: for libraries compiled without coverage
/// (libjpeg, libpng, libwebp, yaml-cpp), messages replace the coverage of branches. Digits in
/// messages are ignored.
void reached(std::string_view message);

/// Reads every byte, so that a sanitizer detects a span that extends past its memory.
void touch(Input bytes);

}  // namespace precast::fuzz
