#include "gpu/pattern.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeline::gpu {
namespace {

constexpr std::size_t max_program = 4096;  // Instructions.
constexpr std::size_t max_group_depth = 50, max_quantifiers = 50;
constexpr unsigned max_repetitions = 255;

}  // namespace

/// Parses to instructions whose jumps are relative, so that a repetition is a copy.
class PatternCompiler {
 public:
  explicit PatternCompiler(std::string_view text) : text_(text) {}

  std::variant<Pattern, TextError> compile() {
    Pattern pattern;
    pattern.program_ = read_alternatives(0);
    if (!error_ && at_ < text_.size()) fail("a `)` without its `(`");
    if (error_) return *error_;
    return pattern;
  }

 private:
  using Kind = Pattern::Kind;
  using Program = Pattern::Program;

  void fail(std::string message) {
    if (!error_) error_ = TextError{at_, std::move(message)};
    at_ = text_.size();
  }
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static void append(Program& program, const Program& more) {
    program.insert(program.end(), more.begin(), more.end());
  }

  /// Returns a program that runs the given program or skips it; with `is_repeated`, runs it any
  /// number of times.
  static Program optional(const Program& program, bool is_repeated) {
    const auto size = static_cast<int>(program.size());
    Program made{{Kind::split, {}, 1, size + (is_repeated ? 2 : 1)}};
    append(made, program);
    if (is_repeated) made.push_back({Kind::jump, {}, -size - 1});
    return made;
  }

  Program read_alternatives(std::size_t depth) {
    if (depth > max_group_depth) {
      fail("groups are nested too deeply");
      return {};
    }
    auto program = read_sequence(depth);
    while (take('|')) {
      const auto other = read_sequence(depth);
      Program either{{Kind::split, {}, 1, static_cast<int>(program.size()) + 2}};
      append(either, program);
      either.push_back({Kind::jump, {}, static_cast<int>(other.size()) + 1});
      append(either, other);
      program = std::move(either);
    }
    return program;
  }

  /// The program of an empty sequence is not empty either, so that its repetitions are limited.
  Program read_sequence(std::size_t depth) {
    Program program{{Kind::jump, {}, 1}};
    while (!at_end() && peek() != '|' && peek() != ')')
      append(program, read_repetitions(read_atom(depth)));
    if (program.size() > max_program) fail("the pattern is too large");
    return program;
  }

  Program read_atom(std::size_t depth) {
    Pattern::Bytes bytes;
    const char c = text_[at_];
    if (c == '(') {
      const auto open = at_++;
      if (take('?') && !take(':'))
        fail("`(?` begins what is not supported here: write a plain group");
      auto group = read_alternatives(depth + 1);
      if (!error_ && !take(')')) {
        at_ = open;
        fail("a `(` without its `)`");
      }
      return group;
    }
    if (c == '[') {
      bytes = read_class();
    } else if (c == '*' || c == '+' || c == '?' || c == '{') {
      fail(std::string("`") + c + "` has nothing before it that it could repeat");
    } else if (c == '^' || c == '$') {
      ++at_;
      return {{c == '^' ? Kind::begin : Kind::end, {}, 1}};
    } else if (c == '.') {
      ++at_;
      bytes.set();
    } else if (c == '\\') {
      bytes = read_escape();
    } else {
      ++at_;
      bytes.set(static_cast<unsigned char>(c));
    }
    return {{Kind::byte, bytes, 1}};
  }

  Pattern::Bytes read_escape() {
    Pattern::Bytes bytes;
    ++at_;
    if (at_end()) {
      fail("a `\\` at the end");
      return bytes;
    }
    const char c = text_[at_++];
    const auto range = [&](char from, char to) {
      for (int i = from; i <= to; ++i) bytes.set(static_cast<std::size_t>(i));
    };
    const char lower = static_cast<char>(c | 0x20);
    if (lower == 'd' || lower == 'w') range('0', '9');
    if (lower == 'w') range('a', 'z'), range('A', 'Z'), range('_', '_');
    if (lower == 's') range('\t', '\r'), range(' ', ' ');
    if (bytes.any()) return c == lower ? bytes : ~bytes;
    const bool is_letter = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
    if (is_letter) {
      at_ -= 2;
      fail(std::string("`\\") + c + "` is not supported");
    } else {
      bytes.set(static_cast<unsigned char>(c));
    }
    return bytes;
  }

  /// Reads a character of a class, or an escape.
  Pattern::Bytes read_member() {
    if (peek() == '\\') return read_escape();
    Pattern::Bytes bytes;
    bytes.set(static_cast<unsigned char>(text_[at_++]));
    return bytes;
  }
  /// Returns the only byte of the set.
  static std::size_t only(const Pattern::Bytes& bytes) {
    std::size_t byte = 0;
    while (!bytes[byte]) ++byte;
    return byte;
  }
  Pattern::Bytes read_class() {
    Pattern::Bytes bytes;
    const auto open = at_++;
    const bool is_negated = take('^');
    for (bool is_first = true; !error_ && !at_end() && (is_first || peek() != ']');
         is_first = false) {
      // ECS has Java's patterns, in which these are classes of their own.
      if (peek() == '[' || text_.substr(at_).starts_with("&&")) {
        fail("a class within a class, or `&&` in it, is not supported; a literal `[` is `\\[`");
        break;
      }
      const auto begin = at_;
      const auto first = read_member();
      bytes |= first;
      const bool is_range = first.count() == 1 && peek() == '-' && at_ + 1 < text_.size() &&
                            text_[at_ + 1] != ']' && text_[at_ + 1] != '[';
      if (!is_range) continue;
      ++at_;
      const auto last = read_member();
      if (last.count() != 1) {
        at_ = begin;
        fail("a range ends with one character, not with a class");
      } else if (only(last) < only(first)) {
        at_ = begin;
        fail("the range ends before it begins");
      } else {
        for (auto i = only(first); i <= only(last); ++i) bytes.set(i);
      }
    }
    if (!error_ && !take(']')) {
      at_ = open;
      fail("a `[` without its `]`");
    }
    return is_negated ? ~bytes : bytes;
  }

  std::optional<unsigned> read_number() {
    std::optional<unsigned> number;
    while (!at_end() && peek() >= '0' && peek() <= '9' && number.value_or(0) <= max_repetitions)
      number = number.value_or(0) * 10 + static_cast<unsigned>(text_[at_++] - '0');
    return number;
  }

  Program read_repetitions(Program atom) {
    for (std::size_t count = 0; !at_end() && !error_; ++count) {
      std::optional<unsigned> minimum = 0, maximum;  // No maximum: unlimited.
      const auto begin = at_;
      if (take('*')) {
      } else if (take('+')) {
        minimum = 1;
      } else if (take('?')) {
        maximum = 1;
      } else if (take('{')) {
        minimum = read_number();
        maximum = take(',') ? read_number() : minimum;
        const bool is_wrong =
            (!minimum && !maximum) || !take('}') || minimum.value_or(0) > max_repetitions ||
            maximum.value_or(0) > max_repetitions || (maximum && *maximum < minimum.value_or(0));
        if (is_wrong) {
          at_ = begin;
          fail("a repetition must be `{2}`, `{2,}` or `{2,5}`, up to 255");
        }
      } else {
        return atom;
      }
      if (count >= max_quantifiers) fail("too many repetitions one after another");
      take('?');  // A lazy quantifier; the same as a greedy one where the whole text is matched.
      atom = repeated(atom, minimum.value_or(0), maximum);
    }
    return atom;
  }

  Program repeated(const Program& program, unsigned minimum, std::optional<unsigned> maximum) {
    const auto copies = maximum.value_or(minimum + 1);
    if (copies * (program.size() + 2) > max_program) fail("the pattern is too large");
    Program made;
    for (unsigned i = 0; i < copies && !error_; ++i)
      append(made, i < minimum ? program : optional(program, !maximum));
    return made;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<TextError> error_;
};

std::variant<Pattern, TextError> Pattern::compile(std::string_view text) {
  constexpr std::size_t max_pattern = 1000;
  if (text.size() > max_pattern) return TextError{max_pattern, "the pattern is too long"};
  return PatternCompiler(text).compile();
}

bool Pattern::matches(std::string_view text) const {
  std::vector<std::size_t> states, next, pending;
  // For each state, the position after which it was entered last.
  std::vector<std::size_t> seen(program_.size() + 1, 0);
  const auto enter = [&](std::size_t state, std::size_t position, std::vector<std::size_t>& into) {
    pending.assign(1, state);
    while (!pending.empty()) {
      const std::size_t each = pending.back();
      pending.pop_back();
      if (std::exchange(seen[each], position + 1) == position + 1) continue;
      if (each == program_.size() || program_[each].kind == Kind::byte) {
        into.push_back(each);
        continue;
      }
      const auto& [kind, bytes, jump, other] = program_[each];
      if ((kind == Kind::begin && position > 0) || (kind == Kind::end && position < text.size()))
        continue;
      pending.push_back(each + static_cast<std::size_t>(jump));
      if (kind == Kind::split) pending.push_back(each + static_cast<std::size_t>(other));
    }
  };
  enter(0, 0, states);
  for (std::size_t i = 0; i < text.size() && !states.empty(); ++i) {
    next.clear();
    for (const auto state : states)
      if (state < program_.size() && program_[state].bytes[static_cast<unsigned char>(text[i])])
        enter(state + 1, i + 1, next);
    states.swap(next);
  }
  return std::ranges::find(states, program_.size()) != states.end();
}

}  // namespace pipeline::gpu
