#include "data/sources/tar_index.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

void check(const data::TarIndex& index, Input archive) {
  std::size_t bytes = 0;
  for (const data::TarMember& member : index.files) {
    require(!member.path.empty() && member.path.front() != '/', "a path is relative");
    require(member.path != ".." && !member.path.starts_with("../") &&
                member.path.find("/../") == std::string::npos && !member.path.ends_with("/.."),
            "a path stays inside the archive");
    touch(member.bytes);
    bytes += member.bytes.size();
  }
  require(bytes <= archive.size(), "the members fit in the archive");
}

}  // namespace

void tar(Input input) {
  data::TarIndex index = data::index_tar(input, "input");
  check(index, input);
  check(data::open_inner_tars(std::move(index), "input"), input);
}

}  // namespace precast::fuzz
