#include "data/order/filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/order/class_names.h"
#include "data/order/sample_property.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::data {

/// A node of an expression's syntax tree.
struct SampleFilter::Node {
  enum class Kind {
    conjunction,
    disjunction,
    negation,
    in,
    less,
    at_most,
    greater,
    at_least,
    equal,
    unequal
  };
  Kind kind = Kind::conjunction;
  std::vector<std::unique_ptr<const Node>> parts;
  /// The name of a SampleProperty.
  std::string name;
  /// A number in the expression, in the two forms for comparisons.
  struct Number {
    /// For integers: long double represents every int64.
    long double exact = 0;
    /// For values of float fields: the nearest double, which is what a file contains if the same
    /// number was written to it.
    long double as_double = 0;
  };
  std::vector<Number> numbers;
  /// Class names that the value is compared with, in addition to the numbers.
  std::vector<std::string> classes;
  /// Whether one of the numbers was written as an image mode: jpg or raw.
  bool modes = false;
};

namespace {

using Node = SampleFilter::Node;

constexpr int kMaxDepth = 100;

constexpr std::pair<std::string_view, Node::Kind> kComparisons[] = {
    {"<=", Node::Kind::at_most}, {">=", Node::Kind::at_least}, {"==", Node::Kind::equal},
    {"!=", Node::Kind::unequal}, {"<", Node::Kind::less},      {">", Node::Kind::greater}};

constexpr std::pair<std::string_view, ImageMode> kModes[] = {{"jpg", ImageMode::jpg},
                                                             {"raw", ImageMode::raw}};

struct Token {
  enum class Kind { word, quoted, number, sign, end } kind = Kind::end;
  /// For quoted names, including the quotes.
  std::string_view text;
  std::size_t column = 1;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { advance(); }

  std::unique_ptr<const Node> parse() {
    auto root = parse_or(0);
    if (token_.kind != Token::Kind::end) fail("'and', 'or' or the end");
    return root;
  }

 private:
  void advance() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::size_t begin = at_;
    const auto take_while = [&](auto holds) {
      while (at_ < text_.size() && holds(static_cast<unsigned char>(text_[at_]))) ++at_;
    };
    const auto in_number = [&](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' ||
             ((c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'));
    };
    Token::Kind kind = Token::Kind::end;
    if (begin < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[begin]);
      if (std::isalpha(c) != 0 || c == '_') {
        kind = Token::Kind::word;
        take_while([](unsigned char d) { return std::isalnum(d) != 0 || d == '_' || d == '.'; });
      } else if (std::isdigit(c) != 0 || c == '-' || c == '+' || c == '.') {
        kind = Token::Kind::number;
        ++at_;
        take_while(in_number);
      } else if ((c == '"' || c == '\'') &&
                 text_.find(text_[begin], begin + 1) != std::string_view::npos) {
        kind = Token::Kind::quoted;
        at_ = text_.find(text_[begin], begin + 1) + 1;
      } else {
        kind = Token::Kind::sign;
        at_ += begin + 1 < text_.size() && text_[begin + 1] == '=' ? 2 : 1;
      }
    }
    token_ = {kind, text_.substr(begin, at_ - begin), begin + 1};
  }

  [[noreturn]] void fail(std::string_view expected) const {
    throw ConfigError(fmt::format(
        "expected {}, got {} (column {} of '{}'). Examples: label < 10; label in [1, 2]; label == "
        "\"dogs\"",
        expected, token_.kind == Token::Kind::end ? "the end" : fmt::format("'{}'", token_.text),
        token_.column, text_));
  }
  bool accept(std::string_view text) {
    if (token_.kind == Token::Kind::end || token_.text != text) return false;
    advance();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("'{}'", text));
  }

  std::unique_ptr<const Node> parse_or(int depth) {
    return parse_chain(Node::Kind::disjunction, "or", [&] { return parse_and(depth); });
  }
  std::unique_ptr<const Node> parse_and(int depth) {
    return parse_chain(Node::Kind::conjunction, "and", [&] { return parse_not(depth); });
  }
  /// Parses terms that are joined by `word` into one node. A node for each pair of terms would make
  /// the tree as deep as the number of terms, and functions that walk it would overflow the stack.
  template <typename ParseTerm>
  std::unique_ptr<const Node> parse_chain(Node::Kind kind, std::string_view word,
                                          ParseTerm parse_term) {
    std::vector<std::unique_ptr<const Node>> terms;
    do terms.push_back(parse_term());
    while (accept(word));
    if (terms.size() == 1) return std::move(terms.front());
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->parts = std::move(terms);
    return node;
  }
  std::unique_ptr<const Node> parse_not(int depth) {
    if (depth > kMaxDepth)
      fail(fmt::format("at most {} levels of parentheses and 'not'", kMaxDepth));
    if (accept("not")) return negate(parse_not(depth + 1));
    if (accept("(")) {
      auto inner = parse_or(depth + 1);
      expect(")");
      return inner;
    }
    return parse_comparison();
  }

  static std::unique_ptr<const Node> negate(std::unique_ptr<const Node> part) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::negation;
    node->parts.push_back(std::move(part));
    return node;
  }

  std::unique_ptr<const Node> parse_comparison() {
    auto node = std::make_unique<Node>();
    node->name = parse_name();
    const bool negation = accept("not");
    if (negation || token_.text == "in") {
      expect("in");
      node->kind = Node::Kind::in;
      parse_list(*node);
      return negation ? negate(std::move(node)) : std::move(node);
    }
    for (const auto& [sign, kind] : kComparisons) {
      if (!accept(sign)) continue;
      node->kind = kind;
      parse_value(*node, kind == Node::Kind::equal || kind == Node::Kind::unequal);
      return node;
    }
    fail("one of < <= > >= == !=, 'in' or 'not in'");
  }

  std::string_view parse_name() {
    std::string_view name = token_.text;
    if (token_.kind == Token::Kind::quoted) {
      name = name.substr(1, name.size() - 2);
    } else if (token_.kind != Token::Kind::word) {
      fail("a field's name");
    }
    if (name.empty()) fail("a field's name");
    advance();
    return name;
  }

  /// Adds a number, or a class name if `named` allows one.
  void parse_value(Node& node, bool named) {
    if (!named || token_.kind != Token::Kind::quoted) {
      node.numbers.push_back(parse_number(node, named));
      return;
    }
    node.classes.emplace_back(token_.text.substr(1, token_.text.size() - 2));
    advance();
  }

  Node::Number parse_number(Node& node, bool named) {
    for (const auto& [word, mode] : kModes) {
      if (!accept(word)) continue;
      node.modes = true;
      const auto number = static_cast<long double>(mode);
      return {number, number};
    }
    std::string_view digits = token_.text;
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto value = precast::parse_number<long double>(digits);
    if (token_.kind != Token::Kind::number || !value || !std::isfinite(*value)) {
      const bool mode = node.name == "mode" || node.name.ends_with(".mode");
      if (mode) fail("jpg or raw (or a number, if a field has this name)");
      fail(named ? "a number, or a class name in quotes" : "a number");
    }
    advance();
    const auto rounded = precast::parse_number<double>(digits);
    return {*value, rounded && std::isfinite(*rounded) ? *rounded : *value};
  }
  void parse_list(Node& node) {
    const bool round = accept("(");
    if (!round && !accept("[")) fail("'(' or '['");
    do parse_value(node, /*named=*/true);
    while (accept(","));
    if (!accept(round ? ")" : "]")) fail(round ? "',' or ')'" : "',' or ']'");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token token_;
};

/// An expression whose names are resolved for one file.
class BoundNode {
 public:
  BoundNode(const Node& node, const BetonReader& reader) : node_(node) {
    parts_.reserve(node.parts.size());
    for (const auto& part : node.parts) parts_.emplace_back(*part, reader);
    if (node.name.empty()) return;
    property_.emplace(reader, node.name);
    if (node.modes && !property_->is_mode())
      throw ConfigError(
          fmt::format("filter: expected numbers to compare '{}' with, got jpg or raw", node.name));
    for (const Node::Number& number : node.numbers)
      numbers_.push_back(property_->is_floating() ? number.as_double : number.exact);
    add_classes(reader);
    std::ranges::sort(numbers_);
  }

  [[nodiscard]] bool matches(std::uint64_t sample) const {
    const auto part_matches = [sample](const BoundNode& part) { return part.matches(sample); };
    switch (node_.kind) {
      case Node::Kind::conjunction:
        return std::ranges::all_of(parts_, part_matches);
      case Node::Kind::disjunction:
        return std::ranges::any_of(parts_, part_matches);
      case Node::Kind::negation:
        return !parts_[0].matches(sample);
      default:
        return holds(property_->of(sample));
    }
  }

 private:
  /// Adds the labels of the classes that the expression names.
  void add_classes(const BetonReader& reader) {
    if (node_.classes.empty()) return;
    const auto field = property_->integer_field();
    if (!field) {
      throw ConfigError(fmt::format("filter: expected {} to compare '{}' with, got '{}'",
                                    property_->is_mode() ? "jpg or raw without quotes" : "numbers",
                                    node_.name, node_.classes[0]));
    }
    const std::vector<std::string> names = class_names_of(reader, *field);
    for (const std::string& name : node_.classes) {
      const std::vector<std::int64_t> labels =
          labels_of_class("filter", name, names, reader.path().string());
      numbers_.insert(numbers_.end(), labels.begin(), labels.end());
    }
  }

  /// NaN equals no number, and would break the binary search.
  [[nodiscard]] bool is_listed(long double value) const {
    return !std::isnan(value) && std::ranges::binary_search(numbers_, value);
  }

  [[nodiscard]] bool holds(long double value) const {
    switch (node_.kind) {
      case Node::Kind::in:
      case Node::Kind::equal:
        return is_listed(value);
      case Node::Kind::unequal:
        return !is_listed(value);
      default:
        break;
    }
    const long double bound = numbers_.front();
    switch (node_.kind) {
      case Node::Kind::less:
        return value < bound;
      case Node::Kind::at_most:
        return value <= bound;
      case Node::Kind::greater:
        return value > bound;
      default:
        return value >= bound;
    }
  }

  const Node& node_;
  std::vector<BoundNode> parts_;
  std::optional<SampleProperty> property_;
  /// The numbers to compare the value with, ascending. `in` and `==` match any of them.
  std::vector<long double> numbers_;
};

}  // namespace

SampleFilter::SampleFilter(std::string_view expression) : root_(Parser(expression).parse()) {}

SampleFilter::~SampleFilter() = default;

std::vector<std::uint64_t> SampleFilter::select(const BetonReader& reader, std::uint64_t first,
                                                std::uint64_t end) const {
  const BoundNode bound(*root_, reader);
  std::vector<std::uint64_t> matching;
  for (std::uint64_t sample = first; sample < end; ++sample) {
    if (bound.matches(sample)) matching.push_back(sample);
  }
  return matching;
}

}  // namespace precast::data
