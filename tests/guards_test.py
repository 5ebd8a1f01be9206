#!/usr/bin/env python3
"""Removes overrides from sample guards and expects guards.py to report them."""

import unittest

import guards

INTERFACES = guards.classes(
    """
class PRECAST_API Stateful {
 public:
  virtual ~Stateful() = default;
  [[nodiscard]] virtual State state() const { return {}; }
};
class Method : public Stateful {
 public:
  virtual void on_batch(Batch& /*batch*/, std::int64_t /*step*/) {}
  // virtual void of_old();
  [[nodiscard]] virtual at::Tensor operator()(const at::Tensor& outputs,
                                              const Batch& batch) const = 0;
};
"""
)
SHARED = """
template <typename Part>
class GuardedState : public Part {
  [[nodiscard]] State state() const override {
    return part_.during("state", [](auto& part) { return part.state(); });
  }
};
"""
METHOD = """
class GuardedMethod final : public GuardedState<api::Method> {
  void on_batch(Batch& batch, std::int64_t step) override {
    part_.during("on_batch", [&](auto& method) { method.on_batch(batch, step); });
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& outputs,
                                      const Batch& batch) const override {
    return part_(outputs, batch);
  }
};
"""


def missing(source):
    return list(guards.missing(guards.classes(source), INTERFACES))


class GuardsTest(unittest.TestCase):
    def test_a_complete_guard_passes(self):
        self.assertEqual(missing(SHARED + METHOD), [])

    def test_a_forgotten_function_is_named(self):
        for name, text in [("on_batch", METHOD), ("operator()", METHOD), ("state", SHARED)]:
            source = (SHARED + METHOD).replace(text, text.replace(f" {name}(", " other("))
            self.assertEqual(missing(source), [("GuardedMethod", name)])

    def test_a_guard_without_the_shared_part_misses_the_base_class(self):
        source = METHOD.replace("GuardedState<api::Method>", "api::Method")
        self.assertEqual(missing(source), [("GuardedMethod", "state")])


if __name__ == "__main__":
    unittest.main()
