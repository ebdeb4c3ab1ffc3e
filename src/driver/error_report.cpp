#include "driver/error_report.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "async/system_failure.hpp"
#include "core/address.hpp"
#include "core/reading_stop.hpp"
#include "core/text.hpp"

namespace pipeline::driver {

namespace fs = std::filesystem;
using nlohmann::json;

ErrorFacts facts_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const core::InputError& e) {
    return {.code = core::ExitCode::bad_input, .kind = "input", .message = e.what(), .input = &e};
  } catch (const core::BuildError& e) {
    return {.code = core::ExitCode::build_failed,
            .kind = "build",
            .message = e.what(),
            .details = e.details(),
            .advice = e.advice()};
  } catch (const core::Stopped& e) {
    return {.code = core::ExitCode::interrupted, .kind = "interrupted", .message = e.what()};
  } catch (const core::EnvironmentError& e) {
    return {.message = e.what(), .advice = e.advice()};
  } catch (const Interrupted& e) {
    return {.code = core::ExitCode::interrupted, .kind = "interrupted", .message = e.what()};
  } catch (const fs::filesystem_error& e) {  // For example, another program removed the file.
    std::error_code problem;
    const auto working_folder = fs::current_path(problem);
    if (working_folder.empty() && problem == std::errc::no_such_file_or_directory)
      return {.message = "the current folder has been removed: " + problem.message(),
              .advice = {"change to a folder that exists"}};
    return {.message = "cannot use '" + e.path1().string() + "': " + e.code().message()};
  } catch (const std::exception& e) {
    try {
      async::rethrow_as_environment_error();
    } catch (const core::EnvironmentError& converted) {
      return {.message = converted.what(), .advice = converted.advice()};
    } catch (...) {
    }
    return {.kind = "internal",
            .message = std::string("internal error: ") + e.what(),
            .advice = {
                "this is a fault of pipe itself: please report it with the command and the file"}};
  } catch (...) {
    return {.kind = "internal", .message = "internal error"};
  }
}

std::string plain_text(const ErrorFacts& facts) {
  if (facts.code == core::ExitCode::interrupted) return {};
  if (facts.input && !facts.input->file().empty()) {
    const auto count = facts.input->diagnostics().size();
    return facts.message + "\n" +
           (count > 1 ? "\n" + core::counted(count, "problem") + " in " + facts.input->file() + "\n"
                      : "");
  }
  // The message of an InputError is rendered: it has its "error: " and its line ends already.
  std::string text = facts.message.starts_with("error: ") ? "" : "error: ";
  text += (facts.input ? facts.message : core::printable(facts.message)) + "\n";
  for (const auto& line : facts.details) text += "  | " + core::printable(line) + "\n";
  for (const auto& line : facts.advice) text += "  hint: " + core::printable(line) + "\n";
  return text;
}

json diagnostic_json(const core::Diagnostic& diagnostic) {
  json entry{{"code", diagnostic.code},
             {"severity", diagnostic.severity == core::Severity::error ? "error" : "warning"},
             {"message", core::masked_addresses(diagnostic.message)}};
  if (diagnostic.span.line) {
    entry["line"] = diagnostic.span.line;
    entry["column"] = diagnostic.span.column;
  }
  if (!diagnostic.notes.empty()) entry["notes"] = diagnostic.notes;
  if (!diagnostic.suggestion.empty()) entry["suggestion"] = diagnostic.suggestion;
  return entry;
}

json error_json(const std::exception_ptr& error) {
  const auto facts = facts_of(error);
  json report{{"event", "error"},
              {"kind", facts.kind},
              {"message", facts.message},
              {"exit_code", static_cast<int>(facts.code)}};
  if (!facts.details.empty()) report["details"] = facts.details;
  if (!facts.advice.empty()) report["advice"] = facts.advice;
  if (facts.input) {
    report["message"] = facts.input->diagnostics().empty()
                            ? facts.message
                            : core::masked_addresses(facts.input->diagnostics().front().message);
    for (const auto& diagnostic : facts.input->diagnostics()) {
      auto entry = diagnostic_json(diagnostic);
      if (!facts.input->file().empty()) entry["file"] = facts.input->file_of(diagnostic);
      report["diagnostics"].push_back(std::move(entry));
    }
  }
  return report;
}

}  // namespace pipeline::driver
