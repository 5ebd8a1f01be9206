#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench decode FILE.beton|IMAGES...`: how fast JPEGs (or random crops of them) are
/// decoded and resized: images, megabytes and megapixels per CPU-second of the decoding threads.
int run_bench_decode(const std::vector<std::string>& args);

}  // namespace precast::tools
