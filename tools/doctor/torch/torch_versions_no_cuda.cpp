#include "tools/doctor/torch/torch_versions.h"

namespace precast::tools {

nlohmann::ordered_json cuda_versions() {
  return {{"cuda", nullptr}, {"devices", nlohmann::ordered_json::array()}};
}

}  // namespace precast::tools
