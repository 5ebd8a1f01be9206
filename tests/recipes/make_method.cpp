#include "tests/recipes/make_method.h"

#include "recipes/register.h"

namespace precast::test {

std::unique_ptr<Method> make_method(const std::string& name, const std::string& options) {
  MethodRegistry registry("method");
  recipes::register_methods(registry);
  auto method = registry.create(name);
  Diagnostics diagnostics;
  Schema schema;
  method->options(schema);
  schema.apply(parse_override(options, {"test", 1, 1}, diagnostics), diagnostics, name);
  diagnostics.throw_if_errors();
  return method;
}

}  // namespace precast::test
