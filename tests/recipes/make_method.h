#pragma once

#include <memory>
#include <string>

#include "framework/api/method.h"

namespace precast::test {

/// Creates a method in the same way as a recipe. @param options YAML. @throws ConfigError
[[nodiscard]] std::unique_ptr<Method> make_method(const std::string& name,
                                                  const std::string& options = "{}");

}  // namespace precast::test
