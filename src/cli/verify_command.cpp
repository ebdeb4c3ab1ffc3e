// `pipe verify`: looks for damaged artifacts, and for faults of the database.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/quantity.hpp"
#include "driver/verification.hpp"

namespace pipeline::cli {
namespace {

const char* name_of(driver::ArtifactFinding::State state) {
  switch (state) {
    case driver::ArtifactFinding::State::damaged: return "damaged";
    case driver::ArtifactFinding::State::missing: return "missing";
    case driver::ArtifactFinding::State::not_here: break;
  }
  return "not on this machine";
}

nlohmann::json to_json(const driver::Verification& found, core::ExitCode code) {
  auto findings = nlohmann::json::array();
  for (const auto& finding : found.findings) {
    nlohmann::json entry{{"digest", finding.digest.hex()}, {"state", name_of(finding.state)}};
    if (!finding.run.empty()) entry.update({{"run", finding.run}, {"output", finding.output}});
    findings.push_back(std::move(entry));
  }
  return {{"artifacts", found.artifacts},
          {"bytes", found.bytes},
          {"findings", std::move(findings)},
          {"database", found.database},
          {"exit_code", static_cast<int>(code)}};
}

std::string to_text(const driver::Verification& found, const Paint& paint) {
  Table table;
  table.add({"ARTIFACT", "IS", "MADE BY"});
  bool has_damaged = false, has_missing = false;
  for (const auto& finding : found.findings) {
    has_damaged |= finding.state == driver::ArtifactFinding::State::damaged;
    has_missing |= finding.state == driver::ArtifactFinding::State::missing;
    table.add({finding.digest.hex().substr(0, 12), name_of(finding.state),
               finding.run.empty() ? "no run" : finding.output + " of run " + finding.run});
  }
  std::string text = table.empty() ? "" : table.render(paint);
  for (const auto& fault : found.database) text += "database: " + for_terminal(fault) + "\n";
  text += "read " + counted(found.artifacts, "artifact") + ", " + core::format_bytes(found.bytes) +
          ", and the database: " +
          (found.problems() ? counted(found.problems(), "problem") : "no problems") + "\n";
  if (has_damaged)
    text += "damaged artifacts were moved to artifacts/damaged; the next run makes them again\n";
  else if (has_missing)
    text += "the next run makes missing artifacts again\n";
  return text;
}

}  // namespace

core::ExitCode verify_command(Context& context) {
  const auto found = driver::verify(context, context.options().run);
  const auto code = found.problems() ? core::ExitCode::environment : core::ExitCode::ok;
  if (context.options().json)
    context.print_json(to_json(found, code));
  else
    context.print(to_text(found, context.paint()));
  return code;
}

}  // namespace pipeline::cli
