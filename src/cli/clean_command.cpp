// `pipe clean`: removes containers, images, environments and old runs.
#include <unistd.h>

#include <iostream>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "driver/clean_up.hpp"

namespace pipeline::cli {
namespace {

nlohmann::json to_json(const driver::CleanUpReport& report, bool is_dry_run) {
  auto removed = nlohmann::json::array();
  for (const auto& item : report.removed)
    removed.push_back({{"kind", item.kind}, {"name", item.name}, {"bytes", item.bytes}});
  return {{"dry_run", is_dry_run},
          {"removed", std::move(removed)},
          {"kept", report.kept},
          {"bytes", report.freed}};
}

/// Asks the user before all runs are removed: `--runs` was given without a number of runs to keep.
void confirm_all_runs(driver::CleanUp& wanted, Context& context) {
  const bool has_limit = wanted.keep || !wanted.keep_storage.empty();
  if (!wanted.runs || has_limit || wanted.dry_run || wanted.all) return;
  std::string answer;
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1) {
    context.note("This removes all runs except those with the tag `keep`. Go on? [y/N]");
    std::getline(std::cin, answer);
  }
  if (answer != "y" && answer != "yes")
    throw core::InputError("`--runs` without a number removes all runs",
                           "`--keep 0` says that all may go, `--keep 5` keeps the newest five, and "
                           "`--dry-run` removes nothing");
  wanted.keep = 0;
}

}  // namespace

core::ExitCode clean_command(Context& context) {
  auto wanted = context.options().clean;
  confirm_all_runs(wanted, context);
  const bool is_json = context.options().json;
  const auto report = driver::clean_up(context, wanted, [&](const std::string& why) {
    if (!is_json) context.note("kept: " + why);
  });
  const auto end = report.is_complete ? core::ExitCode::ok : core::ExitCode::environment;
  if (is_json) {
    context.print_json(to_json(report, wanted.dry_run));
    return end;
  }
  Table table;
  table.add({wanted.dry_run ? "TO REMOVE" : "REMOVED", "", "SIZE"});
  for (const auto& item : report.removed)
    table.add(
        {item.kind, shorten_digests(item.name), item.bytes ? core::format_bytes(item.bytes) : ""});
  if (!table.empty()) context.print(table.render(context.paint()));
  context.print((wanted.dry_run ? "would free " : "freed ") + core::format_bytes(report.freed) +
                "\n");
  return end;
}

}  // namespace pipeline::cli
