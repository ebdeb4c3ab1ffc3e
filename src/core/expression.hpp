/// @file
/// The language of conditions: comparisons of numbers, texts and booleans, joined by `and`, `or`
/// and `not`, such as `${evaluate.metrics.accuracy} > 0.9 and not ${params.dry_run}`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pipeline::core {

/// An error in an expression; offset and length are in bytes of its text.
class ExpressionError : public std::exception {
 public:
  ExpressionError(std::size_t begin, std::size_t bytes, std::string text, std::string advice = {})
      : offset(begin), length(bytes), message(std::move(text)), suggestion(std::move(advice)) {}
  const char* what() const noexcept override { return message.c_str(); }

  std::size_t offset, length;
  std::string message, suggestion;
};

class Expression {
 public:
  /// A `${NAME}` of the text.
  struct Variable {
    std::string name;
    std::size_t offset, length;  ///< In bytes of the text, with `${` and `}`.
  };
  /// Returns the value of a variable; null if it is not known yet. May throw ExpressionError.
  using Lookup = std::function<const nlohmann::json*(const Variable&)>;

  /// Throws ExpressionError if the text is not an expression.
  static Expression parse(std::string_view text);

  /// Returns the variables in the text's order.
  const std::vector<Variable>& variables() const { return variables_; }
  /// Throws ExpressionError if the types of the known values do not fit, whatever the values of the
  /// unknown variables will be.
  void check(const Lookup& known) const;
  /// Returns the value of the expression if the known values decide it, otherwise nothing.
  /// Evaluates from left to right, and no further than needed. Throws ExpressionError for values of
  /// a wrong type.
  std::optional<bool> evaluate(const Lookup& known) const;

 private:
  enum class Kind : std::uint8_t { literal, variable, negation, conjunction, disjunction, compare };
  enum class Type : std::uint8_t { unknown, number, text, boolean };
  struct Node {
    Kind kind;
    std::size_t offset, length;
    std::string comparison = {};      ///< `==`, `<`, ...
    std::size_t left = 0, right = 0;  ///< Indices of the operands, or the index of the variable.
    nlohmann::json value = {};        ///< Value of a literal.
  };
  struct Value {
    Type type = Type::unknown;
    std::optional<nlohmann::json> content;
  };
  class Parser;
  class Evaluation;

  std::string text_;
  std::vector<Node> nodes_;  ///< The last one is the whole expression.
  std::vector<Variable> variables_;
};

}  // namespace pipeline::core
