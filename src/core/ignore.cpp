#include "core/ignore.hpp"

#include <algorithm>
#include <iterator>

#include "core/diagnostic.hpp"
#include "core/text.hpp"
#include "core/utf8.hpp"

namespace pipeline::core {

namespace {

/// Unicode's blank characters. The list at index i has those that take i + 1 bytes in UTF-8.
constexpr std::string_view blanks[] = {" \t\n\v\f\r", "\u0085\u00a0",
                                       "\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
                                       "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"};

/// Removes blank characters from both ends of the text, as Go's strings.TrimSpace does.
std::string_view trim(std::string_view text) {
  /// Returns the size of the blank character at one end of the text; 0: no blank character is
  /// there.
  /// @param bytes_at_end returns the given number of bytes from that end
  const auto blank_size = [](auto bytes_at_end) {
    for (std::size_t size = 1; size <= std::size(blanks); ++size)
      for (auto rest = blanks[size - 1]; !rest.empty(); rest.remove_prefix(size))
        if (bytes_at_end(size) == rest.substr(0, size)) return size;
    return std::size_t{0};
  };
  const auto first_bytes = [&](std::size_t size) { return text.substr(0, size); };
  const auto last_bytes = [&](std::size_t size) {
    return text.substr(text.size() - std::min(size, text.size()));
  };
  while (const auto size = blank_size(first_bytes)) text.remove_prefix(size);
  while (const auto size = blank_size(last_bytes)) text.remove_suffix(size);
  return text;
}

/// Calls `take(line, number)` for each line, numbered from 1. Leaves out a byte order mark at the
/// beginning of the text and carriage returns at the ends of lines.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  unsigned number = 0;
  for (auto line : lines_of(without_byte_order_mark(text))) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(line, ++number);
  }
}

/// Cleans a path as Go's path/filepath.Clean does: removes empty and `.` components and resolves
/// `x/..`.
std::string clean(std::string_view path) {
  const bool rooted = path.starts_with('/');
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const auto component = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (component.empty() || component == ".") continue;
    const bool is_up = component == "..";
    if (is_up && !kept.empty() && kept.back() != "..")
      kept.pop_back();
    else if (!is_up || !rooted)
      kept.push_back(component);
  }
  std::string result = rooted ? "/" : "";
  for (const auto component : kept) {
    if (!result.empty() && result.back() != '/') result += '/';
    result += component;
  }
  return result.empty() ? "." : result;
}

/// The number of rules is limited because each path of a folder is compared with each rule.
constexpr std::size_t max_rules = 50'000;

/// Throws InputError if there is no room for another rule.
/// @param subject begins the message: the file or files, with `has` or `have`
void check_rules(std::size_t count, const std::string& subject) {
  if (count < max_rules) return;
  throw InputError(subject + " more than " + std::to_string(max_rules) + " rules",
                   "exclude whole folders, or use patterns, instead of naming each file");
}

/// Returns a line as docker's ignorefile.ReadAll returns it: a path relative to the context, with
/// `!` in front if the path is included again.
std::string docker_rule(std::string_view line) {
  auto text = trim(line);
  const bool negated = text.starts_with('!');
  if (negated) text = trim(text.substr(1));
  std::string rule = text.empty() ? std::string() : clean(text);
  if (rule.size() > 1 && rule.front() == '/') rule.erase(0, 1);
  return negated ? "!" + rule : rule;
}

/// Removes trailing spaces, except those behind a `\` (trim_trailing_spaces in git's dir.c).
std::string_view trim_for_git(std::string_view line) {
  auto end = line.size();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') {
      end = std::min(end, i);
    } else {
      if (line[i] == '\\' && ++i == line.size()) return line;
      end = line.size();
    }
  }
  return line.substr(0, end);
}

}  // namespace

DockerIgnore::DockerIgnore(std::string_view rules, std::string_view file) {
  std::vector<Diagnostic> errors;
  for_each_line(rules, [&](std::string_view line, unsigned number) {
    if (line.starts_with('#')) return;
    // Docker trims and cleans a rule twice, when it reads the file and when it matches. The second
    // time, `/!x` has become `!x`, and is taken as an exception.
    const auto rule = docker_rule(line);
    if (trim(rule).empty()) return;
    auto pattern = clean(trim(rule));
    const bool negated = pattern.starts_with('!');
    if (negated) pattern.erase(0, 1);
    const auto refuse = [&](std::string message, std::string note) {
      errors.push_back({"ignore-pattern",
                        std::move(message),
                        {number, 1, span_length(std::max<std::size_t>(line.size(), 1))},
                        {std::move(note)},
                        {}});
    };
    if (pattern.empty()) {
      refuse("a '!' without a pattern",
             "'!' in front of a pattern includes paths again that an earlier line has excluded");
      return;
    }
    auto glob = Glob::docker(pattern);
    if (!glob) {
      refuse(
          "malformed pattern '" + pattern + "'",
          "close the class, as in [a-z]; '\\' must be followed by the character that it escapes");
      return;
    }
    check_rules(rules_.size(), std::string(file) + " has");
    rules_.push_back({std::move(*glob), negated});
    has_exceptions_ |= negated;
  });
  if (!errors.empty()) throw InputError(std::move(errors), std::string(file), std::string(rules));
}

bool DockerIgnore::ignores(std::string_view relative_path) const {
  // This is patternmatcher.MatchesUsingParentResults. The loop visits the folders of the path from
  // the root down, and at last the path itself. A rule that matches a folder matches everything
  // below. Docker does not try a rule that cannot change the result so far; at that folder such a
  // rule counts as not matching, even if its pattern would match.
  std::vector<bool> matched(rules_.size());
  bool ignored = false;
  for (std::size_t slash = 0; slash != std::string_view::npos;) {
    slash = relative_path.find('/', slash + 1);
    const auto path = relative_path.substr(0, slash);
    ignored = false;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (!matched[i] && rules_[i].negated == ignored) matched[i] = rules_[i].glob.matches(path);
      if (matched[i]) ignored = !rules_[i].negated;
    }
  }
  return ignored;
}

void GitIgnore::add(std::string_view folder, std::string_view rules) {
  for_each_line(rules, [&](std::string_view line, unsigned) {
    line = line.substr(0, line.find('\0'));
    if (line.starts_with('#')) return;
    line = trim_for_git(line);
    if (line.empty()) return;
    Rule rule{};
    if (line.starts_with('!')) {
      rule.negated = true;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      rule.directories_only = true;
      line.remove_suffix(1);
    }
    rule.anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    if (line.empty()) return;
    if (!folder.empty()) rule.folder = std::string(folder) + '/';
    rule.prefix = std::string(line.substr(0, line.find_first_of("*?[\\")));
    // Git compares the prefix of a path separately, and the prefix decides what a `**` after it
    // means. A rule without a slash is a name, which git matches as a whole.
    if (!rule.anchored) rule.prefix.clear();
    rule.rest = Glob::git(line.substr(rule.prefix.size()));
    check_rules(rules_.size(), "the .gitignore files together have");
    rules_.push_back(std::move(rule));
  });
}

bool GitIgnore::matches(const Rule& rule, std::string_view path, bool is_directory) const {
  if (rule.directories_only && !is_directory) return false;
  if (!path.starts_with(rule.folder) || path.size() == rule.folder.size()) return false;
  if (!rule.anchored) return rule.rest.matches(path.substr(path.rfind('/') + 1));
  path.remove_prefix(rule.folder.size());
  return path.starts_with(rule.prefix) && rule.rest.matches(path.substr(rule.prefix.size()));
}

bool GitIgnore::ignores(std::string_view relative_path, bool is_directory) const {
  // The last rule that matches decides. The folders above the path are checked first, because
  // everything below an ignored folder is ignored.
  for (std::size_t slash = 0; slash != std::string_view::npos;) {
    slash = relative_path.find('/', slash + 1);
    const auto path = relative_path.substr(0, slash);
    const bool directory = slash != std::string_view::npos || is_directory;
    const auto rule = std::find_if(rules_.rbegin(), rules_.rend(),
                                   [&](const Rule& r) { return matches(r, path, directory); });
    if (rule != rules_.rend() && !rule->negated) return true;
  }
  return false;
}

}  // namespace pipeline::core
