#include "tools/cli/old_spellings.h"

#include <algorithm>
#include <array>

#include "tools/cli/custom_fields.h"

namespace precast::tools {
namespace {

using Values = OldSpelling::Values;

constexpr std::string_view kLayout = "mask=16:8";

constexpr std::array kOldSpellings = {
    OldSpelling{"write", "kind", "source-kind", "auto"},
    OldSpelling{"write", "classes", "class-names", "names.txt"},
    OldSpelling{"write", "field", "field-layout", kLayout, Values::layouts},
    OldSpelling{"write", "field", "field-kind", "mask=bytes", Values::others},
    OldSpelling{"sizes", "kind", "source-kind", "auto"},
    OldSpelling{"sizes", "classes", "class-names", "names.txt"},
    OldSpelling{"sizes", "field", "field-layout", kLayout},
    OldSpelling{"sizes", "sample", "count", "100"},
    OldSpelling{"sizes", "quality", "image.quality", "50,90"},
    OldSpelling{"sizes", "resolution", "image.max_resolution", "256,0"},
    OldSpelling{"sizes", "jpeg-share", "image.compress_probability", "1,0.5"},
    OldSpelling{"index", "field", "field-layout", kLayout},
    OldSpelling{"index", "interval", "every", "8"},
    OldSpelling{"inspect", "labels", "label-values", ""},
    OldSpelling{"inspect", "out", "output", "x.jpg"},
    OldSpelling{"inspect", "batch-size", "global-batch-size", "256"},
    OldSpelling{"inspect", "field", "field-layout", kLayout, Values::layouts},
    OldSpelling{"verify", "field", "field-layout", kLayout},
    OldSpelling{"select", "field", "field-layout", kLayout},
    OldSpelling{"merge", "labels", "label-rule", "offset"},
    OldSpelling{"merge", "field", "field-layout", kLayout},
    OldSpelling{"preview", "samples", "positions", "0,3,5"},
    OldSpelling{"preview", "config", "config-file", "recipe.yaml"},
    OldSpelling{"preview", "field", "field-layout", kLayout},
    OldSpelling{"report", "out", "output", "out.html"},
    OldSpelling{"bench loader", "samples", "pass-samples", "100"},
    OldSpelling{"bench loader", "field", "field-layout", kLayout},
    OldSpelling{"bench decode", "threads", "workers", "2"},
    OldSpelling{"bench decode", "interval", "every", "8"},
    OldSpelling{"bench step", "windows", "runs", "5"},
    OldSpelling{"bench step", "out", "output", "x.json"},
    OldSpelling{"bench allreduce", "repeats", "runs", "15"},
};

}  // namespace

std::span<const OldSpelling> old_spellings() {
  return kOldSpellings;
}

const OldSpelling* find_old_spelling(std::string_view command, std::string_view option,
                                     std::string_view value) {
  const auto found = std::ranges::find_if(kOldSpellings, [&](const OldSpelling& one) {
    if (one.command != command || one.old != option) return false;
    return one.values == Values::all || (one.values == Values::layouts) == is_field_layout(value);
  });
  return found == kOldSpellings.end() ? nullptr : &*found;
}

}  // namespace precast::tools
