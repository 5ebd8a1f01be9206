#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/program.h"

namespace precast::test {

/// What one call of `precast` did.
struct PrecastRun {
  int code = 0;
  std::string out;
  std::string err;
};

inline PrecastRun precast_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(PRECAST_BIN_DIR) + "/precast");
  Program program(std::move(arguments));
  const int code = program.wait();
  return {code, program.out, program.err};
}

}  // namespace precast::test
