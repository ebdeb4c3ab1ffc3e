#include "core/expression.hpp"

#include <array>
#include <utility>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"

namespace pipeline::core {
namespace {

/// Deeper expressions are refused, because they are read recursively.
constexpr unsigned max_nesting = 50;
/// Maximum number of operators and operands. A chain such as `A or B or C` is evaluated
/// recursively, too.
constexpr std::size_t max_parts = 4000;
constexpr std::string_view spaces = " \t\r\n";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// An operator of another language, and the operator to write instead.
struct Foreign {
  std::string_view word, replacement;
};
constexpr std::array foreign_operators{
    Foreign{"&&", "and"}, Foreign{"||", "or"}, Foreign{"===", "=="}, Foreign{"=>", ">="},
    Foreign{"=<", "<="},  Foreign{"=", "=="},  Foreign{"<>", "!="},  Foreign{"!", "not"},
    Foreign{"&", "and"},  Foreign{"|", "or"}};

}  // namespace

class Expression::Parser {
 public:
  Parser(Expression& made, std::string_view text) : made_(made), text_(text) {}

  void run() {
    disjunction();
    skip_spaces();
    if (at_ < text_.size()) refuse("`and`, `or` or the end");
  }

 private:
  std::size_t disjunction() {
    return joined(Kind::disjunction, "or", [&] { return conjunction(); });
  }
  std::size_t conjunction() {
    return joined(Kind::conjunction, "and", [&] { return negation(); });
  }

  template <class Operand>
  std::size_t joined(Kind kind, std::string_view word, Operand operand) {
    auto left = operand();
    while (takes_word(word)) {
      const auto right = operand();
      left = add(kind, made_.nodes_[left].offset, left, right);
    }
    return left;
  }

  std::size_t negation() {
    const Depth depth(*this);
    skip_spaces();
    const auto offset = at_;
    if (!takes_word("not")) return comparison();
    const auto operand = negation();
    return add(Kind::negation, offset, operand, operand);
  }

  std::size_t comparison() {
    const auto left = operand();
    auto sign = takes_comparison();
    if (sign.empty()) return left;
    const auto right = operand();
    const auto node = add(Kind::compare, made_.nodes_[left].offset, left, right);
    made_.nodes_[node].comparison = std::move(sign);
    skip_spaces();
    const auto offset = at_;
    if (const auto next = takes_comparison(); !next.empty())
      throw ExpressionError(offset, next.size(), "a comparison has two sides",
                            "write `A < B and B < C`");
    return node;
  }

  std::size_t operand() {
    const Depth depth(*this);
    skip_spaces();
    if (at_ == text_.size())
      throw ExpressionError(text_.empty() ? 0 : text_.size() - 1, 1,
                            "the expression ends where a value is expected");
    const char c = text_[at_];
    if (c == '(') return group();
    if (c == '$') return variable();
    if (c == '\'' || c == '"') return quoted(c);
    if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') return number();
    return word();
  }

  std::size_t group() {
    const auto open = at_++;
    const auto inner = disjunction();
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != ')')
      throw ExpressionError(open, 1, "this `(` is not closed");
    ++at_;
    made_.nodes_[inner].offset = open;
    made_.nodes_[inner].length = at_ - open;
    return inner;
  }

  std::size_t variable() {
    const auto offset = at_;
    const auto end = text_.find('}', at_);
    if (text_.substr(at_, 2) != "${" || end == std::string_view::npos)
      throw ExpressionError(offset, 1, "a value of the pipeline is written `${NAME}`",
                            "as in `${params.X}` or `${STEP.OUTPUT.MEMBER}`");
    at_ = end + 1;
    made_.variables_.push_back(
        {std::string(text_.substr(offset + 2, end - offset - 2)), offset, at_ - offset});
    return add(Kind::variable, offset, made_.variables_.size() - 1, 0);
  }

  std::size_t quoted(char quote) {
    const auto offset = at_;
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      throw ExpressionError(offset, 1, "this text has no closing quote");
    at_ = end + 1;
    return literal(offset, std::string(text_.substr(offset + 1, end - offset - 1)));
  }

  std::size_t number() {
    const auto offset = at_;
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '+' || text_[at_] == '-'))
      ++at_;
    const auto written = text_.substr(offset, at_ - offset);
    auto value = parse_json(written);
    if (!value.is_number())
      throw ExpressionError(
          offset, at_ - offset,
          "'" + printable(written) + "' is not a number, such as 0.9, -1 or 1e-3");
    return literal(offset, std::move(value));
  }

  std::size_t word() {
    const auto offset = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string written(text_.substr(offset, at_ - offset));
    if (written == "true" || written == "false") return literal(offset, written == "true");
    at_ = offset;
    if (written.empty() || written == "and" || written == "or") refuse("a value");
    if (written == "True" || written == "False")
      throw ExpressionError(offset, written.size(), "'" + written + "' is not a value",
                            written == "True" ? "write `true`" : "write `false`");
    auto end = offset + written.size();
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
    const std::string dotted(text_.substr(offset, end - offset));
    throw ExpressionError(offset, dotted.size(), "'" + dotted + "' is not a value",
                          dotted != written
                              ? "write `${" + dotted + "}`, or `'" + dotted + "'` for a text"
                              : "write `'" + written + "'` for a text, `${params." + written +
                                    "}` for a parameter, `${STEP.OUTPUT}` for an output");
  }

  /// Reports what stands here instead of `expected`.
  [[noreturn]] void refuse(const char* expected) {
    for (const auto& [sign, replacement] : foreign_operators)
      if (text_.substr(at_).starts_with(sign))
        throw ExpressionError(at_, sign.size(),
                              "`" + std::string(sign) + "` is not an operator here",
                              "write `" + std::string(replacement) + "`");
    auto end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == at_) ++end;
    const auto found = text_.substr(at_, end - at_);
    throw ExpressionError(
        at_, found.size(),
        "`" + printable(found) + "` stands where " + std::string(expected) + " is expected");
  }

  std::string takes_comparison() {
    skip_spaces();
    const auto rest = text_.substr(at_);
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (rest.starts_with(sign) && !rest.starts_with("===") && !rest.starts_with("<>")) {
        at_ += sign.size();
        return std::string(sign);
      }
    if (rest.starts_with("=") || rest.starts_with("<>")) refuse("a comparison");
    return {};
  }

  bool takes_word(std::string_view word) {
    skip_spaces();
    const auto rest = text_.substr(at_);
    if (!rest.starts_with(word) || (rest.size() > word.size() && is_word(rest[word.size()])))
      return false;
    at_ += word.size();
    return true;
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(spaces, at_), text_.size()); }

  std::size_t literal(std::size_t offset, nlohmann::json value) {
    const auto node = add(Kind::literal, offset, 0, 0);
    made_.nodes_[node].value = std::move(value);
    return node;
  }

  std::size_t add(Kind kind, std::size_t offset, std::size_t left, std::size_t right) {
    if (made_.nodes_.size() == max_parts)
      throw ExpressionError(
          offset, at_ - offset,
          "the expression has more than " + std::to_string(max_parts) + " operators and values");
    made_.nodes_.push_back({kind, offset, at_ - offset, {}, left, right, {}});
    return made_.nodes_.size() - 1;
  }

  /// Counts a level of nesting until the end of a scope.
  struct Depth {
    explicit Depth(Parser& parent) : parser(parent) {
      if (parser.depth_ == max_nesting)
        throw ExpressionError(parser.at_, 1, "the expression is nested too deeply");
      ++parser.depth_;
    }
    ~Depth() { --parser.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& parser;
  };

  Expression& made_;  ///< Receives the nodes and variables.
  std::string_view text_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
};

class Expression::Evaluation {
 public:
  /// Whether the right side of `and` and `or` is evaluated where the left side decides.
  enum class RightSide { always, if_needed };
  Evaluation(const Expression& expression, const Lookup& known, RightSide right_side)
      : expression_(expression), known_(known), right_side_(right_side) {}

  /// Returns the value of the whole expression; nothing if the known values do not decide it.
  std::optional<bool> run() const {
    const auto& root = expression_.nodes_.back();
    return truth(root, "the condition");
  }

 private:
  static std::string name_of(Type type) {
    return type == Type::number ? "a number" : type == Type::text ? "a text" : "true or false";
  }

  std::string written(const Node& node) const {
    return expression_.text_.substr(node.offset, node.length);
  }

  Value value_of(const Node& node) const {
    switch (node.kind) {
      case Kind::literal: return known_value(node, node.value);
      case Kind::variable: {
        const auto* value = known_(expression_.variables_[node.left]);
        return value ? known_value(node, *value) : Value{};
      }
      case Kind::compare: return compare(node);
      case Kind::negation: {
        const auto operand = truth(expression_.nodes_[node.left], "what follows `not`");
        return boolean(operand ? std::optional(!*operand) : std::nullopt);
      }
      case Kind::conjunction:
      case Kind::disjunction: return boolean(joined(node));
    }
    return {};
  }

  /// Returns the text of a variable with a member's name added: `${a.b}` becomes `${a.b.MEMBER}`.
  std::string with_member(const Node& node, const char* member) const {
    auto text = written(node);
    text.insert(std::min(text.find('}'), text.size()), std::string(".") + member);
    return text;
  }

  static Value boolean(std::optional<bool> value) {
    return {Type::boolean, value ? std::optional<nlohmann::json>(*value) : std::nullopt};
  }

  Value known_value(const Node& node, const nlohmann::json& value) const {
    if (value.is_number()) return {Type::number, std::make_optional<nlohmann::json>(value)};
    if (value.is_string()) return {Type::text, std::make_optional<nlohmann::json>(value)};
    if (value.is_boolean()) return {Type::boolean, std::make_optional<nlohmann::json>(value)};
    throw ExpressionError(
        node.offset, node.length,
        written(node) + " is " +
            (value.is_null()    ? "null"
             : value.is_array() ? "a list"
                                : "a map") +
            ", not a number, a text, true or false",
        value.is_object()  ? "name one of its members: `" + with_member(node, "MEMBER") + "`"
        : value.is_array() ? "name one of its items: `" + with_member(node, "0") + "`"
                           : std::string());
  }

  std::optional<bool> truth(const Node& node, const std::string& what) const {
    const auto value = value_of(node);
    if (value.type != Type::boolean && value.type != Type::unknown)
      throw ExpressionError(
          node.offset, node.length,
          what + " must be true or false, but " + written(node) + " is " + name_of(value.type),
          "compare it: `" + written(node) + (value.type == Type::number ? " > 0`" : " == 'yes'`"));
    return value.content ? std::optional(value.content->get<bool>()) : std::nullopt;
  }

  /// Returns the value of a conjunction or disjunction.
  std::optional<bool> joined(const Node& node) const {
    // If one side is false, so is an `and`; if one side is true, so is an `or`.
    const bool deciding = node.kind == Kind::disjunction;
    const std::string what = deciding ? "each side of `or`" : "each side of `and`";
    const auto left = truth(expression_.nodes_[node.left], what);
    if (right_side_ == RightSide::if_needed && left == deciding) return deciding;
    const auto right = truth(expression_.nodes_[node.right], what);
    if (left == deciding || right == deciding) return deciding;
    return left && right ? std::optional(!deciding) : std::nullopt;
  }

  /// Returns the value's type for messages, or its text if that is Python's way to write a number
  /// which JSON does not have: metrics are read with such a number as a text.
  static std::string described(const Value& value) {
    if (value.type == Type::text && value.content)
      for (const char* word : {"NaN", "Infinity", "-Infinity"})
        if (*value.content == word) return word;
    return name_of(value.type);
  }

  Value compare(const Node& node) const {
    const auto& left_node = expression_.nodes_[node.left];
    const auto& right_node = expression_.nodes_[node.right];
    const auto left = value_of(left_node), right = value_of(right_node);
    const bool is_order = node.comparison[0] == '<' || node.comparison[0] == '>';
    for (const auto* side : {&left, &right})
      if (is_order && side->type == Type::boolean)
        throw ExpressionError(
            node.offset, node.length,
            "true and false have no order: " + written(side == &left ? left_node : right_node) +
                " is compared by `" + node.comparison + "`",
            "numbers and texts are compared by `" + node.comparison + "`");
    if (left.type != Type::unknown && right.type != Type::unknown && left.type != right.type)
      throw ExpressionError(node.offset, node.length,
                            written(left_node) + " is " + described(left) + ", but " +
                                written(right_node) + " is " + described(right),
                            "compare values of one type");
    if (!left.content || !right.content) return {Type::boolean, std::nullopt};
    const auto& a = *left.content;
    const auto& b = *right.content;
    const auto& sign = node.comparison;
    return boolean(sign == "=="   ? a == b
                   : sign == "!=" ? a != b
                   : sign == "<"  ? a < b
                   : sign == "<=" ? a <= b
                   : sign == ">"  ? a > b
                                  : a >= b);
  }

  const Expression& expression_;
  const Lookup& known_;
  RightSide right_side_;
};

Expression Expression::parse(std::string_view text) {
  Expression made;
  made.text_ = text;
  Parser(made, text).run();
  return made;
}

void Expression::check(const Lookup& known) const {
  Evaluation(*this, known, Evaluation::RightSide::always).run();
}

std::optional<bool> Expression::evaluate(const Lookup& known) const {
  return Evaluation(*this, known, Evaluation::RightSide::if_needed).run();
}

}  // namespace pipeline::core
