#include "yaml/document.hpp"

#include <algorithm>
#include <functional>
#include <istream>
#include <streambuf>
#include <string>
#include <unordered_map>

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "core/utf8.hpp"
#include "yaml/errors.hpp"

namespace pipeline::yaml {
namespace {

/// Thrown to stop the parser.
struct Stop {};

/// Lets a stream read a text without a copy of it.
class TextBuffer : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* const begin = const_cast<char*>(text.data());  // The buffer only reads.
    setg(begin, begin, begin + text.size());
  }
};

/// Answers about the source text at yaml-cpp's mark of a node.
class SourceText {
 public:
  explicit SourceText(std::string_view text) : text_(text) {}

  /// Returns the length of a plain or quoted scalar's token on its first line; nothing if its quote
  /// is never closed.
  std::optional<std::size_t> length_at(std::size_t position, const std::string& scalar,
                                       bool quoted) const {
    if (position >= text_.size()) return 1;
    const char quote = text_[position];
    if (!quoted)
      return !scalar.empty() && text_.substr(position, scalar.size()) == scalar ? scalar.size() : 1;
    if (quote != '"' && quote != '\'') return 1;
    for (std::size_t i = position + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\')
        ++i;
      else if (text_[i] != quote)
        continue;
      else if (quote == '\'' && text_.substr(i + 1).starts_with(quote))
        ++i;
      else
        return std::min(i + 1, text_.find('\n', position)) - position;
    }
    return std::nullopt;
  }

  /// Returns true for a written null, `null` or `~`; an omitted one has the next token's mark.
  bool has_null_at(std::size_t position) const {
    const std::string_view rest = text_.substr(std::min(position, text_.size()));
    const auto token = rest.substr(0, rest.find_first_of(" \t\r\n,:]}"));
    return token == "~" || token == "null" || token == "Null" || token == "NULL";
  }

 private:
  std::string_view text_;
};

/// Builds the tree from yaml-cpp's events. Unlike YAML::Load it detects duplicate keys, keeps
/// positions and limits what aliases copy.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, settings::Diagnostics& diagnostics, const YamlLimits& limits)
      : source_(text), diagnostics_(diagnostics), limits_(limits) {}

  std::optional<core::Value> take() { return std::move(root_); }
  /// Returns the byte offset of the last node read; an error of the parser is after this offset.
  std::size_t last_position() const { return last_position_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    core::Value value;
    value.span = span_of(mark);
    if (!source_.has_null_at(static_cast<std::size_t>(mark.pos)) && !open_.empty() &&
        open_.back().key)
      value.span = open_.back().key->span;
    add(std::move(value), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    core::Value value;
    value.kind = core::Value::Kind::scalar;
    value.scalar = text;
    value.quoted = tag != "?" && !tag.empty();
    value.span = span_of(mark);
    last_position_ = static_cast<std::size_t>(mark.pos);
    const auto length = source_.length_at(last_position_, text, value.quoted);
    // yaml-cpp takes the end of the file for the closing quote.
    if (!length) stop({"invalid-yaml", "this quote is never closed", value.span, {}, {}});
    value.span.length = core::span_length(*length);
    check_tag(tag, value.span, "tag:yaml.org,2002:str");
    add(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto anchored = anchors_.find(anchor);
    if (anchored == anchors_.end())
      stop({"bad-alias",
            "this alias is inside of the value that it refers to",
            span_of(mark),
            {},
            {}});
    core::Value copy = anchored->second.value;
    charge(anchored->second.cost, span_of(mark));
    check_depth(open_.size() + anchored->second.depth, mark);
    copy.span = span_of(mark);
    add(std::move(copy), 0, anchored->second.cost, anchored->second.depth);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(core::Value::Kind::list, mark, anchor);
    check_tag(tag, open_.back().value.span, "tag:yaml.org,2002:seq");
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(core::Value::Kind::map, mark, anchor);
    check_tag(tag, open_.back().value.span, "tag:yaml.org,2002:map");
  }
  void OnMapEnd() override { close(); }

 private:
  /// The number of values, and the bytes of their texts.
  struct Cost {
    std::size_t values = 1, bytes = 0;
  };
  /// A list or map whose end has not been read yet.
  struct Open {
    core::Value value;
    YAML::anchor_t anchor = 0;
    std::optional<core::Value> key;  ///< In a map: a key whose value has not been read yet.
    Cost cost;                       ///< Cost of `value` with its content so far.
    std::size_t depth = 1;           ///< Nesting of lists and maps, `value` included.
  };
  struct Anchored {
    core::Value value;
    Cost cost;
    std::size_t depth;
  };

  static core::Span span_of(const YAML::Mark& mark) {
    return {static_cast<unsigned>(mark.line + 1), static_cast<unsigned>(mark.column + 1), 1};
  }

  [[noreturn]] void stop(core::Diagnostic diagnostic) {
    diagnostics_.push_back(std::move(diagnostic));
    throw Stop{};
  }

  void check_depth(std::size_t depth, const YAML::Mark& mark) {
    if (depth > limits_.depth)
      stop({"too-deep",
            "lists and maps are nested more than " + std::to_string(limits_.depth) + " deep",
            span_of(mark),
            {},
            {}});
  }

  /// Counts what an anchor or an alias copies; stops above the limits.
  void charge(const Cost& cost, core::Span span) {
    const bool is_many = (copied_.values += cost.values) > limits_.copied_values;
    if (is_many || (copied_.bytes += cost.bytes) > limits_.copied_bytes)
      stop({"alias-bomb",
            "aliases expand to more than " +
                (is_many ? std::to_string(limits_.copied_values) + " values"
                         : std::to_string(limits_.copied_bytes >> 20) + " MiB of text"),
            span,
            {"anchors (&name) and aliases (*name) that refer to each other grow exponentially"},
            {}});
  }

  /// @param implied the tag that the node has without one, which may be written
  void check_tag(const std::string& tag, core::Span span, std::string_view implied) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == implied) return;
    diagnostics_.push_back({"unsupported-tag",
                            "the tag '" + tag + "' is not supported",
                            span,
                            {"only `!!str` is: quotes around the text say the same"},
                            {}});
  }

  void open(core::Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    check_depth(open_.size() + 1, mark);
    Open next;
    next.value.kind = kind;
    next.value.span = span_of(mark);
    next.anchor = anchor;
    last_position_ = static_cast<std::size_t>(mark.pos);
    open_.push_back(std::move(next));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.value.kind == core::Value::Kind::map) check_keys(done.value);
    // Unused capacity would be a fifth of a large pipeline's memory.
    done.value.members.shrink_to_fit();
    done.value.items.shrink_to_fit();
    add(std::move(done.value), done.anchor, done.cost, done.depth);
  }

  void add(core::Value value, YAML::anchor_t anchor) {
    const Cost cost{1, value.scalar.size()};
    add(std::move(value), anchor, cost, 0);
  }
  void add(core::Value value, YAML::anchor_t anchor, const Cost& cost, std::size_t depth) {
    if (anchor != 0) {
      charge(cost, value.span);
      anchors_.insert_or_assign(anchor, Anchored{value, cost, depth});
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    parent.cost.values += cost.values;
    parent.cost.bytes += cost.bytes;
    parent.depth = std::max(parent.depth, depth + 1);
    if (parent.value.kind == core::Value::Kind::list)
      parent.value.items.push_back(std::move(value));
    else if (!parent.key)
      parent.key = std::move(value);
    else
      add_member(parent, std::move(value));
  }

  void add_member(Open& map, core::Value value) {
    core::Value key = std::move(*map.key);
    map.key.reset();
    if (key.kind != core::Value::Kind::scalar) {
      const bool is_null = key.kind == core::Value::Kind::null;
      diagnostics_.push_back(
          {"bad-key",
           std::string("a key must be a text, not ") + (is_null ? "empty" : "a list or a map"),
           key.span,
           {is_null ? "`null` and `~` need quotes to be a text"
                    : "a text that begins with `{` or `[` needs quotes"},
           {}});
      return;
    }
    if (key.scalar == "<<" && !key.quoted) {
      diagnostics_.push_back({"merge-key",
                              "merge keys (`<<`) are not supported",
                              key.span,
                              {"the pipeline's own keys are the defaults of every step; a plain "
                               "alias (`settings: *name`) works"},
                              {}});
      return;
    }
    map.value.members.push_back({std::move(key), std::move(value)});
  }

  /// Removes and reports the members that repeat an earlier key.
  void check_keys(core::Value& map) {
    auto& members = map.members;
    const auto repeated = repeated_keys(members);
    for (const auto& [again, first] : repeated) {
      const auto& key = members[again].first;
      diagnostics_.push_back(
          {"duplicate-key",
           "the key '" + key.scalar + "' is given twice",
           key.span,
           {"first given in line " + std::to_string(members[first].first.span.line)},
           {}});
    }
    if (repeated.empty()) return;
    std::vector<core::Value::Member> kept;
    kept.reserve(members.size() - repeated.size());
    auto next = repeated.begin();
    for (std::size_t i = 0; i < members.size(); ++i)
      if (next != repeated.end() && next->first == i)
        ++next;
      else
        kept.push_back(std::move(members[i]));
    members = std::move(kept);
  }

  /// Returns the indices of the keys that repeat an earlier key, in order, each with the index of
  /// the first such key.
  static std::vector<std::pair<std::size_t, std::size_t>> repeated_keys(const auto& members) {
    std::vector<std::pair<std::size_t, std::size_t>> repeated;
    constexpr std::size_t small_size = 16;  // Comparing so few in pairs needs no memory.
    if (members.size() <= small_size) {
      for (std::size_t i = 1; i < members.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
          if (members[i].first.scalar == members[k].first.scalar) {
            repeated.emplace_back(i, k);
            break;
          }
      return repeated;
    }
    // Sorting by hash puts equal keys side by side, and is faster than a hash table.
    std::vector<std::pair<std::size_t, std::size_t>> hashes;
    hashes.reserve(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      hashes.emplace_back(std::hash<std::string>()(members[i].first.scalar), i);
    std::ranges::sort(hashes);
    for (std::size_t i = 0, begin = 0; i < hashes.size(); ++i) {
      if (hashes[i].first != hashes[begin].first) begin = i;
      for (std::size_t k = begin; k < i; ++k)
        if (members[hashes[k].second].first.scalar == members[hashes[i].second].first.scalar) {
          repeated.emplace_back(hashes[i].second, hashes[k].second);
          break;
        }
    }
    std::ranges::sort(repeated);
    return repeated;
  }

  SourceText source_;
  settings::Diagnostics& diagnostics_;
  const YamlLimits limits_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::optional<core::Value> root_;
  Cost copied_{0, 0};
  std::size_t last_position_ = 0;
};

/// Returns true if a separator begins a second document. yaml-cpp also begins one where a map
/// follows a list, or the reverse.
bool contains_separator(std::string_view text) {
  const auto first = text.find_first_not_of(" \n");
  return text.find("\n---", first) != std::string_view::npos;
}

}  // namespace

std::optional<core::Value> parse_yaml(std::string_view text, settings::Diagnostics& diagnostics,
                                      const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    diagnostics.push_back({"too-large",
                           "the file is larger than " + std::to_string(limits.bytes >> 20) + " MiB",
                           {},
                           {},
                           {}});
    return std::nullopt;
  }
  if (auto unreadable = find_unreadable(text)) {
    diagnostics.push_back(std::move(*unreadable));
    return std::nullopt;
  }
  text = core::without_byte_order_mark(text);
  TreeBuilder tree(text, diagnostics, limits);
  try {
    TextBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(tree)) {
      diagnostics.push_back({"empty-file", "the file is empty", {}, {}, {}});
      return std::nullopt;
    }
    auto root = tree.take();
    TreeBuilder second(text, diagnostics, limits);
    if (parser.HandleNextDocument(second)) {
      const auto other = second.take();
      const core::Span place = other ? other->span : core::Span{};
      if (contains_separator(text))
        diagnostics.push_back({"several-documents",
                               "a second document begins here; a file holds one pipeline",
                               place,
                               {"remove the line `---` before it"},
                               {}});
      else
        diagnostics.push_back(
            {"invalid-yaml",
             "this does not continue the lines above: lists and maps cannot be mixed",
             place,
             {},
             {}});
    }
    return root;
  } catch (const Stop&) {
  } catch (const YAML::DeepRecursion& error) {
    diagnostics.push_back(
        {"too-deep",
         "lists and maps are nested more than " + std::to_string(limits.depth) + " deep",
         {static_cast<unsigned>(error.mark.line + 1), static_cast<unsigned>(error.mark.column + 1),
          1},
         {},
         {}});
  } catch (const YAML::Exception& error) {
    diagnostics.push_back(explain_yaml_error(error.msg, static_cast<unsigned>(error.mark.line + 1),
                                             static_cast<unsigned>(error.mark.column + 1), text,
                                             tree.last_position()));
  }
  return std::nullopt;
}

}  // namespace pipeline::yaml
