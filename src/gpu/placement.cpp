#include "gpu/placement.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/diagnostic.hpp"
#include "core/joined.hpp"

namespace pipeline::gpu {
namespace {

constexpr std::size_t max_depth = 50, max_expression = 4000;

struct Token {
  enum class Kind { end, word, text, symbol };
  Kind kind = Kind::end;
  std::string value;
  std::size_t begin = 0, end = 0;
};

struct OperatorName {
  const char* name;
  Placement::Operator op;
};
constexpr std::array operator_names{
    OperatorName{"==", Placement::Operator::equal},
    OperatorName{"!=", Placement::Operator::not_equal},
    OperatorName{">=", Placement::Operator::greater_equal},
    OperatorName{">", Placement::Operator::greater},
    OperatorName{"<=", Placement::Operator::less_equal},
    OperatorName{"<", Placement::Operator::less},
    OperatorName{"=~", Placement::Operator::matches},
    OperatorName{"matches", Placement::Operator::matches},
    OperatorName{"!~", Placement::Operator::not_matches},
    OperatorName{"in", Placement::Operator::in},
    OperatorName{"not_in", Placement::Operator::not_in},
    OperatorName{"not_matches", Placement::Operator::not_matches},
    OperatorName{"exists", Placement::Operator::exists},
    OperatorName{"not_exists", Placement::Operator::not_exists},
    OperatorName{"equals", Placement::Operator::equal},
    OperatorName{"not_equals", Placement::Operator::not_equal},
    OperatorName{"greater_than", Placement::Operator::greater},
    OperatorName{"greater_than_equal", Placement::Operator::greater_equal},
    OperatorName{"less_than", Placement::Operator::less},
    OperatorName{"less_than_equal", Placement::Operator::less_equal}};

/// Subjects of the language that refer to a cluster's agents and tasks.
constexpr std::array cluster_subjects{"agentConnected", "agentVersion",      "ec2InstanceId",
                                      "registeredAt",   "runningTasksCount", "task:group"};

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_word(char c) {
  return !is_space(c) && std::string_view("()[],\"'=!<>&|").find(c) == std::string_view::npos;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { advance(); }

  std::variant<Placement, PlacementError> parse() {
    Placement placement;
    if (text_.size() > max_expression)
      fail(max_expression,
           "the expression is longer than " + std::to_string(max_expression) + " characters");
    else if (token_.kind == Token::Kind::end)
      fail(0, "the expression is empty");
    else
      placement = read_any(0);
    if (!error_ && token_.kind != Token::Kind::end) {
      if (is_symbol(")"))
        fail(token_.begin, "a `)` without its `(`");
      else
        fail_without("`and`, `or` or the end");
    }
    if (error_) return *error_;
    return placement;
  }

 private:
  void fail(std::size_t offset, std::string message, std::string suggestion = {}) {
    if (!error_) error_ = PlacementError{{offset, std::move(message)}, std::move(suggestion)};
    token_ = {Token::Kind::end, "", text_.size(), text_.size()};
  }
  void fail_without(const std::string& what, std::string suggestion = {}) {
    fail(token_.begin,
         what + " expected, not " +
             (token_.kind == Token::Kind::end ? "the end" : "'" + token_.value.substr(0, 40) + "'"),
         std::move(suggestion));
  }

  /// Reads the next token.
  void advance() {
    if (error_) return;
    last_end_ = token_.end;
    std::size_t at = token_.end;
    while (at < text_.size() && is_space(text_[at])) ++at;
    token_ = {Token::Kind::end, "", at, at};
    if (at == text_.size()) return;
    const char c = text_[at];
    if (c == '"' || c == '\'') return read_text(c);
    if (is_word(c)) {
      while (at < text_.size() && is_word(text_[at])) ++at;
      token_ = {Token::Kind::word, std::string(text_.substr(token_.begin, at - token_.begin)),
                token_.begin, at};
      return;
    }
    for (const std::string_view symbol :
         {"==", "!=", ">=", "<=", "=~", "!~", "&&", "||", ">", "<", "!", "(", ")", "[", "]", ","})
      if (text_.substr(at).starts_with(symbol)) {
        token_ = {Token::Kind::symbol, std::string(symbol), at, at + symbol.size()};
        return;
      }
    const std::string wrong(1, c);
    fail(at, "'" + wrong + "' is not an operator", "did you mean `" + wrong + wrong + "`?");
  }

  /// Reads a quoted text. A backslash escapes the quote; before other characters it stays, so that
  /// patterns need no doubled backslashes.
  void read_text(char quote) {
    std::string value;
    std::size_t at = token_.begin + 1;
    for (; at < text_.size() && text_[at] != quote; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size() && text_[at + 1] == quote) ++at;
      value += text_[at];
    }
    if (at == text_.size()) return fail(token_.begin, "a quote that does not end");
    token_ = {Token::Kind::text, std::move(value), token_.begin, at + 1};
  }

  bool is_symbol(std::string_view symbol) const {
    return token_.kind == Token::Kind::symbol && token_.value == symbol;
  }
  bool take_symbol(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    advance();
    return true;
  }
  bool take_word(std::string_view word) {
    if (token_.kind != Token::Kind::word || token_.value.size() != word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if ((token_.value[i] | 0x20) != word[i]) return false;
    advance();
    return true;
  }

  Placement joined(Placement::Kind kind, std::vector<Placement> operands, std::size_t begin) {
    if (operands.size() == 1) return std::move(operands.front());
    Placement placement;
    placement.kind = kind;
    placement.operands = std::move(operands);
    placement.text = text_.substr(begin, last_end_ - begin);
    return placement;
  }

  /// Reads operands joined by `or`.
  Placement read_any(std::size_t depth) {
    const std::size_t begin = token_.begin;
    std::vector<Placement> operands;
    do operands.push_back(read_all(depth));
    while (!error_ && (take_word("or") || take_symbol("||")));
    return joined(Placement::Kind::any_of, std::move(operands), begin);
  }

  /// Reads operands joined by `and`.
  Placement read_all(std::size_t depth) {
    const std::size_t begin = token_.begin;
    std::vector<Placement> operands;
    do operands.push_back(read_operand(depth));
    while (!error_ && (take_word("and") || take_symbol("&&")));
    return joined(Placement::Kind::all_of, std::move(operands), begin);
  }

  Placement read_operand(std::size_t depth) {
    const std::size_t begin = token_.begin;
    if (depth > max_depth) {
      fail(begin, "the expression is nested too deeply");
      return {};
    }
    if (take_word("not") || take_symbol("!")) {
      Placement operand = read_operand(depth + 1);
      Placement placement;
      placement.kind = Placement::Kind::negation;
      placement.operands.push_back(std::move(operand));
      placement.text = text_.substr(begin, last_end_ - begin);
      return placement;
    }
    if (!take_symbol("(")) return read_comparison();
    Placement placement = read_any(depth + 1);
    if (!error_ && !take_symbol(")")) {
      if (token_.kind == Token::Kind::end)
        fail(begin, "a `(` without its `)`");
      else
        fail_without("`and`, `or` or `)`");
    }
    return placement;
  }

  Placement read_comparison() {
    Placement placement;
    const std::size_t begin = token_.begin;
    if (token_.kind != Token::Kind::word) {
      fail_without("an attribute, as in `attribute:ecs.instance-type`");
      return placement;
    }
    read_subject(placement);
    if (error_) return placement;
    read_operator(placement);
    if (!error_) read_values(placement);
    placement.text = text_.substr(begin, last_end_ - begin);
    return placement;
  }

  void read_subject(Placement& placement) {
    constexpr std::string_view prefix = "attribute:";
    std::string subject = token_.value;
    if (subject.starts_with(prefix)) {
      placement.attribute = subject.substr(prefix.size());
      if (placement.attribute.empty())
        return fail(token_.end, "an attribute's name expected after `attribute:`");
    } else {
      if (std::find(cluster_subjects.begin(), cluster_subjects.end(), subject) !=
          cluster_subjects.end())
        return fail(token_.begin,
                    "'" + subject +
                        "' is about a cluster's agents and tasks; here a constraint is about "
                        "attributes of the host",
                    "use `attribute:NAME`");
      std::string suggestion = "did you mean `attribute:" + subject.substr(0, 60) + "`?";
      if (const auto colon = subject.find(':'); colon != std::string::npos)
        suggestion = "did you mean `attribute:" + subject.substr(colon + 1, 60) + "`?";
      return fail(token_.begin, "'" + subject.substr(0, 60) + "' is not a subject",
                  std::move(suggestion));
    }
    advance();
  }

  void read_operator(Placement& placement) {
    if (is_symbol("!")) {
      advance();
      if (take_word("exists"))
        placement.op = Placement::Operator::not_exists;
      else if (take_word("in"))
        placement.op = Placement::Operator::not_in;
      else
        fail_without("`exists` or `in`");
      return;
    }
    for (const auto& [name, op] : operator_names)
      if (token_.kind != Token::Kind::text && token_.value == name &&
          token_.kind != Token::Kind::end) {
        placement.op = op;
        return advance();
      }
    std::vector<std::string> names;
    for (const auto& each : operator_names) names.emplace_back(each.name);
    std::string suggestion = core::did_you_mean(token_.value, names);
    if (token_.value == "is" || token_.value == "equal") suggestion = "did you mean `==`?";
    fail_without("an operator (==, !=, >, >=, <, <=, in, !in, exists, !exists, =~, !~)",
                 std::move(suggestion));
  }

  void read_values(Placement& placement) {
    if (placement.op == Placement::Operator::exists ||
        placement.op == Placement::Operator::not_exists)
      return;
    const bool is_pattern = placement.op == Placement::Operator::matches ||
                            placement.op == Placement::Operator::not_matches;
    if (placement.op == Placement::Operator::in || placement.op == Placement::Operator::not_in) {
      if (!take_symbol("["))
        return fail_without("a list in brackets",
                            "as in `attribute:ecs.instance-type in [g4dn.xlarge, g5.xlarge]`");
      do read_value(placement);
      while (!error_ && take_symbol(","));
      if (!error_ && !take_symbol("]")) fail_without("`,` or `]`");
      return;
    }
    const Token value = token_;
    read_value(placement);
    if (error_ || !is_pattern) return;
    // A pattern without quotes is a word, which ends before the first bracket or `|`.
    if (value.kind == Token::Kind::word && value.end < text_.size() &&
        std::string_view("([|").find(text_[value.end]) != std::string_view::npos)
      return fail(value.begin, "a pattern with brackets or `|` has to stand in quotes",
                  "as in `=~ \"g(4dn|5)\\..*\"`");
    auto compiled = Pattern::compile(placement.values.front());
    if (const auto* error = std::get_if<TextError>(&compiled))
      return fail(value.begin + (value.kind == Token::Kind::text ? 1 : 0) + error->offset,
                  "the pattern is wrong: " + error->message);
    placement.pattern = std::make_shared<const Pattern>(std::get<Pattern>(std::move(compiled)));
  }

  void read_value(Placement& placement) {
    if (token_.kind != Token::Kind::word && token_.kind != Token::Kind::text) {
      const bool is_bracket = is_symbol("[");
      return fail_without(
          "a value", is_bracket ? "a list needs `in` or `not_in`; a pattern needs quotes" : "");
    }
    placement.values.push_back(token_.value);
    advance();
  }

  std::string_view text_;
  Token token_;
  std::size_t last_end_ = 0;  ///< End of the token before `token_`.
  std::optional<PlacementError> error_;
};

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns a number less than, equal to or greater than zero.
int compare(const std::string& a, const std::string& b) {
  const auto x = parse_number(a), y = parse_number(b);
  if (x && y) return *x < *y ? -1 : *x > *y ? 1 : 0;
  return a.compare(b);
}

/// Returns true if the host satisfies the comparison.
/// @param value the host's value of the attribute; null if the host does not have the attribute
bool holds(const Placement& comparison, const std::string* value) {
  switch (comparison.op) {
    case Placement::Operator::exists: return value != nullptr;
    case Placement::Operator::not_exists: return value == nullptr;
    case Placement::Operator::not_equal: return !value || *value != comparison.values.front();
    case Placement::Operator::not_matches: return !value || !comparison.pattern->matches(*value);
    case Placement::Operator::not_in:
      return !value || std::find(comparison.values.begin(), comparison.values.end(), *value) ==
                           comparison.values.end();
    default: break;
  }
  if (!value) return false;
  const std::string& wanted = comparison.values.front();
  switch (comparison.op) {
    case Placement::Operator::equal: return *value == wanted;
    case Placement::Operator::greater: return compare(*value, wanted) > 0;
    case Placement::Operator::greater_equal: return compare(*value, wanted) >= 0;
    case Placement::Operator::less: return compare(*value, wanted) < 0;
    case Placement::Operator::less_equal: return compare(*value, wanted) <= 0;
    case Placement::Operator::matches: return comparison.pattern->matches(*value);
    default:
      return std::find(comparison.values.begin(), comparison.values.end(), *value) !=
             comparison.values.end();
  }
}

/// Returns the value of the attribute on this host, in words.
std::string attribute_text(const Placement& comparison, const HostAttributes& host) {
  const auto found = host.find(comparison.attribute);
  return found == host.end() ? "this host has no attribute '" + comparison.attribute + "'"
                             : comparison.attribute + " is '" + found->second + "' here";
}

/// Adds the attributes of all comparisons in the expression, for a negation that fails as a whole.
void describe(const Placement& placement, const HostAttributes& host,
              std::vector<std::string>& texts) {
  if (placement.kind != Placement::Kind::comparison) {
    for (const Placement& operand : placement.operands) describe(operand, host, texts);
  } else if (std::string text = attribute_text(placement, host);
             std::find(texts.begin(), texts.end(), text) == texts.end()) {
    texts.push_back(std::move(text));
  }
}

}  // namespace

std::variant<Placement, PlacementError> parse_placement(std::string_view text) {
  return Parser(text).parse();
}

std::vector<std::string> unsatisfied(const Placement& placement, const HostAttributes& host) {
  std::vector<std::string> reasons;
  switch (placement.kind) {
    case Placement::Kind::comparison: {
      const auto found = host.find(placement.attribute);
      if (!holds(placement, found == host.end() ? nullptr : &found->second))
        reasons.push_back("`" + placement.text + "`: " + attribute_text(placement, host));
      break;
    }
    case Placement::Kind::all_of:
      for (const Placement& operand : placement.operands) {
        const auto more = unsatisfied(operand, host);
        reasons.insert(reasons.end(), more.begin(), more.end());
      }
      break;
    case Placement::Kind::any_of:
      for (const Placement& operand : placement.operands) {
        const auto more = unsatisfied(operand, host);
        if (more.empty()) return {};
        reasons.insert(reasons.end(), more.begin(), more.end());
      }
      break;
    case Placement::Kind::negation:
      if (unsatisfied(placement.operands.front(), host).empty()) {
        std::vector<std::string> texts;
        describe(placement.operands.front(), host, texts);
        reasons.push_back("`" + placement.text + "`: " + core::joined(texts, ", "));
      }
      break;
  }
  return reasons;
}

std::vector<std::string> demanded_values(const Placement& placement, std::string_view attribute,
                                         std::span<const std::string_view> known) {
  std::vector<std::string> values;
  switch (placement.kind) {
    case Placement::Kind::negation: break;
    case Placement::Kind::comparison:
      if (placement.attribute != attribute) break;
      if (placement.op == Placement::Operator::equal || placement.op == Placement::Operator::in)
        values = placement.values;
      if (placement.op == Placement::Operator::matches)
        for (const auto value : known)
          if (placement.pattern->matches(value)) values.emplace_back(value);
      break;
    case Placement::Kind::all_of:
      for (const Placement& operand : placement.operands)
        if (values.empty()) values = demanded_values(operand, attribute, known);
      break;
    case Placement::Kind::any_of:
      for (const Placement& operand : placement.operands) {
        const auto more = demanded_values(operand, attribute, known);
        if (more.empty()) return {};
        values.insert(values.end(), more.begin(), more.end());
      }
      break;
  }
  return values;
}

}  // namespace pipeline::gpu
