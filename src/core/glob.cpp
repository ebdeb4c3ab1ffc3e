#include "core/glob.hpp"

#include <algorithm>

#include "core/utf8.hpp"

namespace pipeline::core {

namespace {

using Ranges = std::vector<std::pair<char32_t, char32_t>>;

/// POSIX classes in the C locale, as git defines them.
const Ranges* posix_class(std::string_view name) {
  static const std::pair<std::string_view, Ranges> classes[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"blank", {{' ', ' '}, {'\t', '\t'}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{0x21, 0x7e}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{0x20, 0x7e}}},
      {"punct", {{0x21, 0x2f}, {0x3a, 0x40}, {0x5b, 0x60}, {0x7b, 0x7e}}},
      {"space", {{' ', ' '}, {'\t', '\r'}}},
      {"upper", {{'A', 'Z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  const auto* found = std::find_if(std::begin(classes), std::end(classes),
                                   [&](const auto& c) { return c.first == name; });
  return found == std::end(classes) ? nullptr : &found->second;
}

}  // namespace

/// Compiles a pattern from left to right.
class GlobCompiler {
 public:
  GlobCompiler(std::string_view pattern, Glob::Unit unit) : rest_(pattern) { glob_.unit_ = unit; }

  std::optional<Glob> docker();
  Glob git();

 private:
  using Kind = Glob::Kind;

  char32_t take() {
    const auto c = glob_.unit_ == Glob::Unit::character
                       ? decode_utf8(rest_)
                       : CodePoint{static_cast<unsigned char>(rest_.front()), 1, true};
    rest_.remove_prefix(c.length);
    return c.valid ? c.value : 0xfffd;  // Go decodes an invalid byte to U+FFFD, too.
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void add(Kind kind) { glob_.tokens_.push_back({kind, {}, false, {}}); }
  void add_folders() {
    add(Kind::folders);
    add(Kind::folders_inside);
  }
  void add_literal() {
    const auto before = rest_;
    take();
    glob_.tokens_.push_back(
        {Kind::literal, std::string(before.substr(0, before.size() - rest_.size())), false, {}});
  }
  bool docker_class();
  bool git_class();
  Glob never() {
    glob_.tokens_.clear();
    glob_.never_ = true;
    return std::move(glob_);
  }

  std::string_view rest_;
  Glob glob_;
};

/// Parses the class after `[` by the rules of Go's filepath.Match: no empty class, no bare `-` or
/// `]` as a member.
bool GlobCompiler::docker_class() {
  Glob::Token set{Kind::set, {}, take('^'), {}};
  const auto member = [&]() -> std::optional<char32_t> {
    if (rest_.empty() || rest_.front() == '-' || rest_.front() == ']') return std::nullopt;
    if (take('\\') && rest_.empty()) return std::nullopt;
    return take();
  };
  do {
    const auto low = member();
    if (!low) return false;
    const auto high = take('-') ? member() : low;
    if (!high || *high < *low) return false;
    set.ranges.emplace_back(*low, *high);
    if (rest_.empty()) return false;
  } while (!take(']'));
  glob_.tokens_.push_back(std::move(set));
  return true;
}

std::optional<Glob> GlobCompiler::docker() {
  // `**name` alone is a suffix; with any other special character it means `**/name`
  // (Pattern.compile of patternmatcher).
  if (rest_.starts_with("**") && rest_.size() > 2 && rest_[2] != '/' &&
      rest_.find_first_of("*?[]\\", 2) == std::string_view::npos) {
    add(Kind::anything);
    rest_.remove_prefix(2);
  }
  while (!rest_.empty()) {
    if (take('*')) {
      if (!take('*')) {
        add(Kind::star);
        continue;
      }
      take('/');
      if (rest_.empty()) {
        add(Kind::anything);
      } else {
        add_folders();
      }
    } else if (take('?')) {
      add(Kind::any);
    } else if (take('[')) {
      if (!docker_class()) return std::nullopt;
    } else {
      if (take('\\') && rest_.empty()) return std::nullopt;
      add_literal();
    }
  }
  glob_.finish();
  return std::move(glob_);
}

/// Parses the class after `[` by the rules of git's dowild().
bool GlobCompiler::git_class() {
  Glob::Token set{Kind::set, {}, take('!') || take('^'), {}};
  std::optional<char32_t> previous;
  bool first = true;
  while (first || !rest_.starts_with(']')) {
    first = false;
    if (rest_.empty()) return false;
    if (rest_.starts_with("[:")) {
      const auto end = rest_.find(']', 2);
      if (end == std::string_view::npos) return false;
      if (end > 2 && rest_[end - 1] == ':') {
        const auto* ranges = posix_class(rest_.substr(2, end - 3));
        if (!ranges) return false;
        set.ranges.insert(set.ranges.end(), ranges->begin(), ranges->end());
        rest_.remove_prefix(end + 1);
        previous.reset();
        continue;
      }
    }
    if (previous && rest_.size() > 1 && rest_.front() == '-' && rest_[1] != ']') {
      rest_.remove_prefix(1);
      if (take('\\') && rest_.empty()) return false;
      set.ranges.emplace_back(*previous, take());
      previous.reset();
      continue;
    }
    if (take('\\') && rest_.empty()) return false;
    previous = take();
    set.ranges.emplace_back(*previous, *previous);
  }
  rest_.remove_prefix(1);
  glob_.tokens_.push_back(std::move(set));
  return true;
}

Glob GlobCompiler::git() {
  bool after_slash = true;
  while (!rest_.empty()) {
    const bool bounded = std::exchange(after_slash, false);
    if (take('*')) {
      bool twice = false;
      while (take('*')) twice = true;
      if (twice && bounded && rest_.starts_with('/')) {
        rest_.remove_prefix(1);
        add_folders();
        after_slash = true;
      } else {
        add(twice && bounded && (rest_.empty() || rest_.starts_with("\\/")) ? Kind::anything
                                                                            : Kind::star);
      }
    } else if (take('?')) {
      add(Kind::any);
    } else if (take('[')) {
      if (!git_class()) return never();
    } else {
      if (take('\\') && rest_.empty()) return never();
      after_slash = rest_.front() == '/';
      add_literal();
    }
  }
  // In git, no class matches a slash.
  for (auto& token : glob_.tokens_) {
    if (token.kind != Kind::set) continue;
    if (token.negated) {
      token.ranges.emplace_back('/', '/');
      continue;
    }
    Ranges kept;
    for (const auto& [low, high] : token.ranges) {
      if (low < '/') kept.emplace_back(low, std::min<char32_t>(high, '/' - 1));
      if (high > '/') kept.emplace_back(std::max<char32_t>(low, '/' + 1), high);
    }
    token.ranges = std::move(kept);
  }
  glob_.finish();
  return std::move(glob_);
}

std::optional<Glob> Glob::docker(std::string_view pattern) {
  return GlobCompiler(pattern, Unit::character).docker();
}
Glob Glob::git(std::string_view pattern) { return GlobCompiler(pattern, Unit::byte).git(); }

void Glob::finish() {
  const auto is_literal = [](const Token& t) { return t.kind == Kind::literal; };
  const auto middle = std::find_if_not(tokens_.begin(), tokens_.end(), is_literal);
  for (auto token = tokens_.begin(); token != middle; ++token) prefix_ += token->literal;
  tokens_.erase(tokens_.begin(), middle);
  const auto end = std::find_if_not(tokens_.rbegin(), tokens_.rend(), is_literal).base();
  for (auto token = end; token != tokens_.end(); ++token) suffix_ += token->literal;
  tokens_.erase(end, tokens_.end());
}

bool Glob::Token::accepts(char32_t c, std::string_view bytes) const {
  switch (kind) {
    case Kind::literal: return literal == bytes;
    case Kind::any:
    case Kind::star: return c != '/';
    case Kind::set:
      return negated != std::any_of(ranges.begin(), ranges.end(), [c](const auto& range) {
               return c >= range.first && c <= range.second;
             });
    case Kind::anything:
    case Kind::folders_inside: return true;
    case Kind::folders: return false;
  }
  return false;
}

bool Glob::matches(std::string_view path) const {
  if (never_ || path.size() < prefix_.size() + suffix_.size() || !path.starts_with(prefix_) ||
      !path.ends_with(suffix_))
    return false;
  path.remove_prefix(prefix_.size());
  path.remove_suffix(suffix_.size());
  if (tokens_.empty()) return path.empty();
  // The set of pattern positions that the path's beginning can lead to: a nondeterministic
  // automaton, simulated without backtracking.
  const auto end = tokens_.size();
  std::vector<char> now(end + 1, 0), next(end + 1, 0);
  const auto enter = [&](std::vector<char>& places, std::size_t place) {
    while (!std::exchange(places[place], 1) && place < end) {
      const auto kind = tokens_[place].kind;
      if (kind == Kind::folders) {
        places[place + 1] = 1;
        place += 2;
      } else if (kind == Kind::star || kind == Kind::anything) {
        ++place;
      } else {
        return;
      }
    }
  };
  enter(now, 0);
  while (!path.empty()) {
    const auto c = unit_ == Unit::character
                       ? decode_utf8(path)
                       : CodePoint{static_cast<unsigned char>(path.front()), 1, true};
    const auto bytes = path.substr(0, c.length);
    path.remove_prefix(c.length);
    const char32_t character = c.valid ? c.value : 0xfffd;
    std::fill(next.begin(), next.end(), 0);
    for (std::size_t place = 0; place < end; ++place) {
      if (!now[place] || !tokens_[place].accepts(character, bytes)) continue;
      switch (tokens_[place].kind) {
        case Kind::star:
        case Kind::anything: enter(next, place); break;
        case Kind::folders_inside:
          next[place] = 1;
          if (character == '/') enter(next, place + 1);
          break;
        default: enter(next, place + 1);
      }
    }
    now.swap(next);
  }
  return now[end] != 0;
}

bool matches_glob(std::string_view glob, std::string_view relative_path) {
  return Glob::git(glob).matches(relative_path);
}

}  // namespace pipeline::core
