#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// `precast bench decode FILE.beton|IMAGES...`: measures how fast JPEGs, or random crops of them,
/// are decoded and resized, in images, megabytes and megapixels per CPU-second of the threads.
int run_bench_decode(const std::vector<std::string>& args);

}  // namespace precast::tools
