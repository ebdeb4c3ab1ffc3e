#include "gpu/pattern.hpp"

#include <memory>
#include <optional>

namespace pipeline::gpu {
namespace {

constexpr std::size_t max_program = 4096, max_group_depth = 50;
constexpr unsigned max_repetitions = 255;

}  // namespace

/// Parses to a tree, then emits its states from the end to the beginning; a repetition is emitted
/// as many times as its count.
class PatternCompiler {
 public:
  explicit PatternCompiler(std::string_view text) : text_(text) {}

  std::variant<Pattern, TextError> compile() {
    const Node root = read_alternatives(0);
    if (!error_ && at_ < text_.size()) fail("a `)` without its `(`");
    if (error_) return *error_;
    Pattern pattern;
    const std::size_t accept = add(pattern, {Instruction::Kind::accept, {}, 0, 0});
    pattern.start_ = lay_out(pattern, root, accept);
    if (error_) return *error_;
    return pattern;
  }

 private:
  using Instruction = Pattern::Instruction;
  struct Node {
    enum class Kind { sequence, alternatives, bytes, begin, end, repeat };
    Kind kind = Kind::sequence;
    std::vector<Node> children;
    Pattern::Bytes bytes;
    unsigned minimum = 0;
    std::optional<unsigned> maximum;  ///< Maximum of `repeat`; unset if unlimited.
  };

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

  Node read_alternatives(std::size_t depth) {
    Node node;
    node.kind = Node::Kind::alternatives;
    if (depth > max_group_depth) {
      fail("groups are nested too deeply");
      return node;
    }
    do node.children.push_back(read_sequence(depth));
    while (take('|'));
    return node;
  }

  Node read_sequence(std::size_t depth) {
    Node node;
    while (!at_end() && peek() != '|' && peek() != ')') {
      Node atom = read_atom(depth);
      node.children.push_back(read_repetitions(std::move(atom)));
    }
    return node;
  }

  Node read_atom(std::size_t depth) {
    Node node;
    node.kind = Node::Kind::bytes;
    const char c = text_[at_];
    if (c == '(') {
      const auto open = at_++;
      if (take('?') && !take(':'))
        fail("`(?` begins what is not supported here: write a plain group");
      node = read_alternatives(depth + 1);
      if (!error_ && !take(')')) {
        at_ = open;
        fail("a `(` without its `)`");
      }
    } else if (c == '[') {
      node.bytes = read_class();
    } else if (c == '*' || c == '+' || c == '?' || c == '{') {
      fail(std::string("`") + c + "` has nothing before it that it could repeat");
    } else if (c == '^' || c == '$') {
      ++at_;
      node.kind = c == '^' ? Node::Kind::begin : Node::Kind::end;
    } else if (c == '.') {
      ++at_;
      node.bytes.set();
    } else if (c == '\\') {
      node.bytes = read_escape();
    } else {
      ++at_;
      node.bytes.set(static_cast<unsigned char>(c));
    }
    return node;
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

  Pattern::Bytes read_class() {
    Pattern::Bytes bytes;
    const auto open = at_++;
    const bool negated = take('^');
    for (bool first = true; !error_ && !at_end() && (first || peek() != ']'); first = false) {
      if (peek() == '\\') {
        bytes |= read_escape();
        continue;
      }
      // ECS has Java's patterns, in which these are classes of their own.
      if (peek() == '[' || text_.substr(at_).starts_with("&&")) {
        fail("a class within a class, or `&&` in it, is not supported; a literal `[` is `\\[`");
        break;
      }
      const auto from = static_cast<unsigned char>(text_[at_++]);
      unsigned char to = from;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        to = static_cast<unsigned char>(text_[at_++]);
      }
      if (to < from) {
        at_ -= 3;
        fail("the range ends before it begins");
      }
      for (unsigned i = from; i <= to; ++i) bytes.set(i);
    }
    if (!error_ && !take(']')) {
      at_ = open;
      fail("a `[` without its `]`");
    }
    return negated ? ~bytes : bytes;
  }

  std::optional<unsigned> read_number() {
    std::optional<unsigned> number;
    while (!at_end() && peek() >= '0' && peek() <= '9' && number.value_or(0) <= max_repetitions)
      number = number.value_or(0) * 10 + static_cast<unsigned>(text_[at_++] - '0');
    return number;
  }

  Node read_repetitions(Node atom) {
    for (std::size_t count = 0; !at_end() && !error_; ++count) {
      Node repeat;
      repeat.kind = Node::Kind::repeat;
      const auto begin = at_;
      if (take('*')) {
      } else if (take('+')) {
        repeat.minimum = 1;
      } else if (take('?')) {
        repeat.maximum = 1;
      } else if (take('{')) {
        const auto minimum = read_number();
        const bool comma = take(',');
        const auto maximum = comma ? read_number() : minimum;
        repeat.minimum = minimum.value_or(0);
        repeat.maximum = maximum;
        const bool wrong =
            (!minimum && !maximum) || !take('}') || repeat.minimum > max_repetitions ||
            maximum.value_or(0) > max_repetitions || (maximum && *maximum < repeat.minimum);
        if (wrong) {
          at_ = begin;
          fail("a repetition must be `{2}`, `{2,}` or `{2,5}`, up to 255");
        }
      } else {
        return atom;
      }
      if (count >= max_group_depth) fail("too many repetitions one after another");
      take('?');  // A lazy quantifier; the same as a greedy one where the whole text is matched.
      repeat.children.push_back(std::move(atom));
      atom = std::move(repeat);
    }
    return atom;
  }

  std::size_t add(Pattern& pattern, const Instruction& instruction) {
    if (pattern.program_.size() >= max_program) {
      fail("the pattern is too large");
      return 0;
    }
    pattern.program_.push_back(instruction);
    return pattern.program_.size() - 1;
  }

  /// @return the first state of the node, when `next` follows it
  std::size_t lay_out(Pattern& pattern, const Node& node, std::size_t next) {
    if (++laid_out_ > 4 * max_program)
      fail("the pattern is too large");  // For example `(){255}{255}{255}`, which matches nothing
                                         // and takes long to expand.
    if (error_) return 0;
    switch (node.kind) {
      case Node::Kind::bytes: return add(pattern, {Instruction::Kind::byte, node.bytes, next, 0});
      case Node::Kind::begin: return add(pattern, {Instruction::Kind::begin, {}, next, 0});
      case Node::Kind::end: return add(pattern, {Instruction::Kind::end, {}, next, 0});
      case Node::Kind::sequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child)
          next = lay_out(pattern, *child, next);
        return next;
      case Node::Kind::alternatives: {
        std::size_t begin = lay_out(pattern, node.children.back(), next);
        for (auto child = node.children.rbegin() + 1; child != node.children.rend(); ++child)
          begin =
              add(pattern, {Instruction::Kind::split, {}, lay_out(pattern, *child, next), begin});
        return begin;
      }
      case Node::Kind::repeat: {
        const Node& child = node.children.front();
        if (!node.maximum) {
          const std::size_t loop = add(pattern, {Instruction::Kind::split, {}, 0, next});
          const std::size_t body = lay_out(pattern, child, loop);
          if (!error_) pattern.program_[loop].next = body;
          next = loop;
        } else {
          const std::size_t after = next;
          for (unsigned i = node.minimum; i < *node.maximum && !error_; ++i)
            next =
                add(pattern, {Instruction::Kind::split, {}, lay_out(pattern, child, next), after});
        }
        for (unsigned i = 0; i < node.minimum && !error_; ++i) next = lay_out(pattern, child, next);
        return next;
      }
    }
    return next;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t laid_out_ = 0;
  std::optional<TextError> error_;
};

std::variant<Pattern, TextError> Pattern::compile(std::string_view text) {
  constexpr std::size_t max_pattern = 1000;
  if (text.size() > max_pattern) return TextError{max_pattern, "the pattern is too long"};
  return PatternCompiler(text).compile();
}

bool Pattern::matches(std::string_view text) const {
  std::vector<std::size_t> states, pending;
  std::vector<std::size_t> seen(
      program_.size(),
      0);  // For each state, the position after which it was entered last.
  const auto enter = [&](std::size_t state, std::size_t position, std::vector<std::size_t>& into) {
    pending.assign(1, state);
    while (!pending.empty()) {
      const std::size_t each = pending.back();
      pending.pop_back();
      if (seen[each] == position + 1) continue;
      seen[each] = position + 1;
      const Instruction& instruction = program_[each];
      switch (instruction.kind) {
        case Instruction::Kind::split:
          pending.push_back(instruction.next);
          pending.push_back(instruction.alternative);
          break;
        case Instruction::Kind::begin:
          if (position == 0) pending.push_back(instruction.next);
          break;
        case Instruction::Kind::end:
          if (position == text.size()) pending.push_back(instruction.next);
          break;
        case Instruction::Kind::byte:
        case Instruction::Kind::accept: into.push_back(each);
      }
    }
  };
  enter(start_, 0, states);
  for (std::size_t i = 0; i < text.size() && !states.empty(); ++i) {
    std::vector<std::size_t> following;
    for (const std::size_t state : states)
      if (program_[state].kind == Instruction::Kind::byte &&
          program_[state].bytes.test(static_cast<unsigned char>(text[i])))
        enter(program_[state].next, i + 1, following);
    states = std::move(following);
  }
  for (const std::size_t state : states)
    if (program_[state].kind == Instruction::Kind::accept) return true;
  return false;
}

}  // namespace pipeline::gpu
