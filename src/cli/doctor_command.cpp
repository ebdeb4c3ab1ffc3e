// `pipe doctor`: checks this machine.
#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "driver/machine_checks.hpp"

namespace pipeline::cli {
namespace {

using driver::CheckLevel;
using nlohmann::json;

const char* word_of(CheckLevel level) {
  return level == CheckLevel::ok ? "ok" : level == CheckLevel::warn ? "warn" : "fail";
}

std::string painted(CheckLevel level, const Paint& paint) {
  if (level == CheckLevel::ok) return paint(Colour::green, "ok    ");
  return level == CheckLevel::warn ? paint(Colour::yellow, "warn  ") : paint(Colour::red, "FAIL  ");
}

}  // namespace

core::ExitCode doctor_command(Context& context) {
  const auto checks = driver::check_machine(context);
  const bool all_well = std::ranges::none_of(
      checks, [](const driver::MachineCheck& check) { return check.level == CheckLevel::fail; });
  if (context.options().json) {
    json list = json::array();
    for (const auto& check : checks)
      list.push_back({{"name", check.name},
                      {"status", word_of(check.level)},
                      {"found", check.found},
                      {"mend", check.fixes}});
    context.write(json{{"ok", all_well}, {"version", PIPELINE_VERSION}, {"checks", list}}.dump(
                      -1, ' ', false, json::error_handler_t::replace) +
                  "\n");
  } else {
    const auto& paint = context.paint();
    std::string text;
    for (const auto& [name, level, found, fixes] : checks) {
      std::string title = name;
      title.resize(15, ' ');
      text += painted(level, paint) + title + for_terminal(found) + "\n";
      for (const auto& line : fixes)
        text += "        " + paint(Colour::cyan, "fix: ") + for_terminal(line) + "\n";
    }
    context.print(text);
  }
  return all_well ? core::ExitCode::ok : core::ExitCode::environment;
}

}  // namespace pipeline::cli
