#include "docker/dockerfile.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <sstream>

#include <kainjow/mustache.hpp>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/text.hpp"
#include "templates/templates.hpp"

namespace pipeline::docker {

namespace mustache = kainjow::mustache;

namespace {

/// Maximum number of bytes of a line: BuildKit before 0.13 reads lines into a buffer of 64 KiB.
constexpr std::size_t max_dockerfile_line = 60'000;

/// Expands `$NAME`, `${NAME}` and `${NAME:-default}`; returns nothing if a name has no value.
std::optional<std::string> expand(std::string_view text, const StringMap& values) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    bool braces = at + 1 < text.size() && text[at + 1] == '{';
    auto begin = at + (braces ? 2 : 1);
    auto end = begin;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    auto value = values.find(std::string(text.substr(begin, end - begin)));
    std::optional<std::string> found =
        value == values.end() ? std::nullopt : std::optional(value->second);
    if (braces) {
      auto close = text.find('}', end);
      if (close == text.npos) return std::nullopt;
      if (text.substr(end, 2) == ":-" && (!found || found->empty()))
        found = text.substr(end + 2, close - end - 2);
      end = close + 1;
    }
    if (!found) return std::nullopt;
    result += *found;
    at = end;
  }
  return result;
}

std::string unquoted(std::string text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

/// Removes the empty lines of omitted sections, except one before each further stage. A text with
/// here-documents stays as it is.
std::string without_gaps(const std::string& text) {
  if (text.find("<<") != text.npos) return text;
  std::istringstream stream(text);
  std::string result;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    if (line.starts_with("FROM ") && result.find("\nFROM ") != result.npos) result += '\n';
    result += line + '\n';
  }
  return result;
}

mustache::data environment_data(const StringMap& environment) {
  mustache::data list{mustache::data::type::list};
  for (const auto& [name, value] : environment) {
    if (!core::is_variable_name(name))
      throw core::InputError("environment: '" + name + "' is not a variable's name",
                             "letters, digits and _, not beginning with a digit");
    if (core::has_control_characters(value))
      throw core::InputError(
          "environment: the value of " + name + " holds a control character, such as a line end",
          "set it under runtime_environment, which is not a part of the Dockerfile");
    auto quoted = quote_env(value);
    if (quoted.size() > max_dockerfile_line)
      throw core::InputError("environment: the value of " + name + " is too long for a Dockerfile",
                             "set it under runtime_environment");
    mustache::data entry;
    entry.set("name", name);
    entry.set("value", quoted);
    list.push_back(entry);
  }
  return list;
}

mustache::data layer_data(const DockerfileValues& values) {
  mustache::data list{mustache::data::type::list};
  for (std::size_t number = 0; number < values.layers; ++number) {
    mustache::data layer("number", std::to_string(number));
    layer.set("from_source", values.built.contains(number));
    list.push_back(layer);
  }
  return list;
}

/// @param user USER of an image
bool is_root(const std::string& user) {
  return user.empty() || user == "0" || user == "root" || user.starts_with("0:") ||
         user.starts_with("root:");
}

/// Returns the user whom the Dockerfile sets at its end; empty if it sets none.
std::string final_user(const DockerfileValues& values) {
  const auto user = values.user                                         ? *values.user
                    : values.installs() && !is_root(values.parent_user) ? values.parent_user
                                                                        : "";
  if (!std::ranges::all_of(user, [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ':';
      }))
    throw core::InputError("user '" + user + "' is not a user's name",
                           "write NAME, UID or UID:GID");
  return user;
}

}  // namespace

std::string quote_env(std::string_view value) {
  std::string quoted = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\' || c == '$') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string dockerfile_text(const DockerfileValues& values, Builder builder,
                            const std::filesystem::path& template_dir) {
  if (!settings::is_image_reference(values.parent_image))
    throw core::InputError("parent_image '" + values.parent_image + "' is not an image reference",
                           "write it as NAME:TAG or REGISTRY/NAME:TAG");
  mustache::data data;
  data.set("note", "Made by pipe; `pipe render` prints it, --template-dir replaces its template.");
  data.set("parent_image", values.parent_image);
  data.set("environment", environment_data(values.environment));
  const bool parent_is_root = is_root(values.parent_user);
  data.set("as_root", values.installs() && !parent_is_root);
  data.set("apt", values.apt);
  data.set("python", values.python);
  data.set("locked", values.layers > 0);
  data.set("layers", layer_data(values));
  data.set("sources", !values.built.empty());
  data.set("project", values.project);
  data.set("tools", values.python || values.layers > 0 || values.project);
  data.set("installs", values.installs());
  data.set("installer", values.installer == PackageInstaller::uv ? "uv" : "pip");
  data.set("needed", values.python || values.layers > 0 ? "required" : "optional");
  if (values.user) data.set("user", *values.user);
  if (const auto user = final_user(values); !user.empty()) data.set("final_user", user);
  auto name = builder == Builder::buildkit ? "Dockerfile.mustache" : "Dockerfile-classic.mustache";
  mustache::mustache page(templates::template_text(name, template_dir));
  if (!page.is_valid())
    throw core::InputError("the template " + std::string(name) +
                           " is malformed: " + page.error_message());
  page.set_custom_escape([](const std::string& text) { return text; });
  return without_gaps(page.render(data));
}

std::vector<Instruction> instructions_of(std::string_view dockerfile) {
  std::vector<Instruction> result;
  char escape = '\\';
  bool directives = true, continued = false;
  unsigned number = 0;
  // Delimiters of pending here-documents, and whether leading tabs are ignored.
  std::vector<std::pair<std::string, bool>> heredocs;
  for (std::size_t at = 0; at <= dockerfile.size();) {
    auto end = std::min(dockerfile.find('\n', at), dockerfile.size());
    auto line = dockerfile.substr(at, end - at);
    at = end + 1;
    ++number;
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())))
      line.remove_suffix(1);
    if (!heredocs.empty()) {
      auto candidate = line;
      while (heredocs.front().second && candidate.starts_with('\t')) candidate.remove_prefix(1);
      if (candidate == heredocs.front().first) heredocs.erase(heredocs.begin());
      continue;
    }
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())))
      line.remove_prefix(1);
    if (line.starts_with('#')) {
      if (directives && !continued) {
        auto directive = core::lower(std::string(line.substr(1)));
        std::erase_if(directive, [](unsigned char c) { return std::isspace(c); });
        if (directive.starts_with("escape=") && directive.size() == 8) escape = directive[7];
        directives = directive.find('=') != directive.npos;
      }
      continue;
    }
    directives = false;
    if (line.empty()) continue;
    const bool is_continued = line.back() == escape;
    if (is_continued) line.remove_suffix(1);
    if (!continued) result.push_back({number, {}});
    for (auto& word : core::words_of(line))
      result.back().text += (result.back().text.empty() ? "" : " ") + word;
    continued = is_continued;
    if (!is_continued)
      for (auto& word : core::words_of(result.back().text))
        if (word.starts_with("<<") && word.size() > 2) {
          auto name = word.substr(2);
          bool tabs = name.starts_with('-');
          if (tabs) name.erase(0, 1);
          if (!name.empty() && !name.starts_with('<')) heredocs.emplace_back(unquoted(name), tabs);
        }
  }
  return result;
}

std::vector<std::string> images_used(std::string_view dockerfile, const StringMap& build_args) {
  std::vector<std::string> images;
  std::set<std::string> stages{"scratch"};
  StringMap arguments;
  bool in_stage = false;
  auto add = [&](const std::string& reference) {
    bool is_stage = stages.contains(core::lower(reference)) ||
                    (!reference.empty() && std::ranges::all_of(reference, [](unsigned char c) {
                      return std::isdigit(c);
                    }));
    if (!is_stage && settings::is_image_reference(reference) &&
        std::ranges::find(images, reference) == images.end())
      images.push_back(reference);
  };
  for (auto& instruction : instructions_of(dockerfile)) {
    auto words = core::words_of(instruction.text);
    auto verb = core::lower(words.front());
    if (verb == "arg" && !in_stage) {
      for (auto word = words.begin() + 1; word != words.end(); ++word) {
        auto equals = word->find('=');
        auto name = word->substr(0, equals);
        if (auto given = build_args.find(name); given != build_args.end())
          arguments[name] = given->second;
        else if (equals != word->npos)
          if (auto value = expand(unquoted(word->substr(equals + 1)), arguments))
            arguments[name] = *value;
      }
    } else if (verb == "from") {
      in_stage = true;
      auto word = words.begin() + 1;
      while (word != words.end() && word->starts_with("--")) ++word;
      if (word == words.end()) continue;
      if (auto reference = expand(unquoted(*word), arguments)) add(*reference);
      if (words.end() - word >= 3 && core::lower(word[1]) == "as")
        stages.insert(core::lower(word[2]));
    } else if (verb == "copy" || verb == "run") {
      for (auto& word : std::span(words).subspan(1)) {
        if (!word.starts_with("--")) break;
        if (word.starts_with("--from=")) add(word.substr(7));
        if (word.starts_with("--mount="))
          for (std::size_t at = 8; at < word.size();) {
            auto comma = std::min(word.find(',', at), word.size());
            if (word.substr(at, comma - at).starts_with("from="))
              add(word.substr(at + 5, comma - at - 5));
            at = comma + 1;
          }
      }
    }
  }
  return images;
}

std::string last_user(std::string_view dockerfile) {
  std::string user;
  for (const auto& instruction : instructions_of(dockerfile)) {
    const auto verb = core::lower(instruction.text.substr(0, 5));
    if (verb == "from ") user.clear();
    if (verb == "user ") user = instruction.text.substr(5);
  }
  return user.find('$') == user.npos ? user : "";
}

}  // namespace pipeline::docker
