#include "cli/completion_model.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "cli/command_table.hpp"
#include "cli/options.hpp"
#include "core/text.hpp"

namespace pipeline::cli {
namespace {

/// Returns the text before its first colon, semicolon or parenthesis.
std::string first_clause(const std::string& text) {
  const auto end = std::min({text.find(": "), text.find("; "), text.find(" (")});
  return text.substr(0, end);
}

/// Returns the words that one_of() accepts.
std::vector<std::string> words_of(const CLI::Option& option) {
  try {
    return core::words_of(const_cast<CLI::Option&>(option).get_validator(0)->get_name());
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

Candidates candidates_of(const std::string& name, const std::string& value) {
  static const std::map<std::string, Candidates, std::less<>> by_name{
      {"--profile", Candidates::profiles}, {"--bucket", Candidates::profiles},
      {"--copy", Candidates::files},       {"WHAT", Candidates::files},
      {"FILE", Candidates::pipelines},     {"DIR", Candidates::folders},
      {"RUN", Candidates::runs},           {"STEP", Candidates::steps},
      {"ARTIFACT", Candidates::artifacts}, {"STEP[.OUTPUT]", Candidates::artifacts}};
  static const std::map<std::string, Candidates, std::less<>> by_value{{"DIR", Candidates::folders},
                                                                       {"FILE", Candidates::files},
                                                                       {"PATH", Candidates::files},
                                                                       {"STEP", Candidates::steps}};
  if (const auto found = by_name.find(name); found != by_name.end()) return found->second;
  const auto found = by_value.find(value);
  return found == by_value.end() ? Candidates::none : found->second;
}

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result;
  for (const auto& name : option.get_snames()) result.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) result.names.push_back("--" + name);
  const auto type = option.get_type_name();
  if (option.get_type_size_max() > 0) result.value = type.substr(0, type.find(':'));
  const auto name = result.names.empty() ? option.get_name() : result.names.back();
  if (result.names.empty()) result.value = name;
  result.words = words_of(option);
  result.candidates = result.words.empty() ? candidates_of(name, result.value) : Candidates::words;
  result.help = first_clause(option.get_description());
  result.is_repeatable = option.get_items_expected_max() > 1;
  return result;
}

}  // namespace

std::vector<CompletedCommand> completed_commands() {
  std::vector<CompletedCommand> all;
  for (const auto& entry : command_table()) {
    if (!entry.summary || entry.programs == CommandEntry::Programs::cpp) continue;
    CLI::App app;
    Options options;
    entry.add_options(app, options);
    auto& command = all.emplace_back();
    command.name = entry.name;
    command.help = first_clause(entry.summary);
    for (const auto* option : std::as_const(app).get_options()) {
      if (option == app.get_help_ptr()) continue;
      auto& list = option->get_positional() ? command.arguments : command.options;
      list.push_back(completed(*option));
    }
  }
  return all;
}

}  // namespace pipeline::cli
