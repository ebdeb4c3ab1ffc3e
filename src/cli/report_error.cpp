#include "cli/report_error.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/terminal.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "driver/error_report.hpp"

namespace pipeline::cli {
namespace {

std::string safe_lines(std::string_view text, const Paint& paint) {
  std::string safe;
  for (const auto line : lines_of(text)) safe += for_terminal(line, paint.on) + "\n";
  return safe;
}

}  // namespace

ErrorReport report_error(const std::exception_ptr& error, const Paint& paint) {
  const auto facts = driver::facts_of(error);
  if (facts.code == core::ExitCode::interrupted) return {facts.code, {}};
  std::string text;
  if (facts.input && !facts.input->file().empty()) {
    text = safe_lines(facts.message, paint);
    const auto count = facts.input->diagnostics().size();
    if (count > 1) text += "\n" + counted(count, "problem") + " in " + facts.input->file() + "\n";
  } else {
    text =
        paint(Colour::red, "error:") + " " +
        safe_lines(facts.message.starts_with("error: ") ? facts.message.substr(7) : facts.message,
                   paint);
  }
  for (const auto& line : facts.details)
    text += "  " + paint(Colour::dim, "| ") + for_terminal(line, paint.on) + "\n";
  for (const auto& line : facts.advice)
    text += "  " + paint(Colour::cyan, "hint: ") + for_terminal(line) + "\n";
  return {facts.code, std::move(text)};
}

core::ExitCode write_error(const std::exception_ptr& error, bool is_json) {
  const auto report = report_error(error, Paint{Terminal::of(STDERR_FILENO).colours});
  if (is_json)
    core::write_all(STDOUT_FILENO, driver::error_json(error).dump(
                                       -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                                       "\n");
  core::write_all(STDERR_FILENO, report.text);
  return report.code;
}

}  // namespace pipeline::cli
