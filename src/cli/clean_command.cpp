#include "cli/commands.hpp"
#include "cli/context.hpp"
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

}  // namespace

core::ExitCode clean_command(Context& context) {
  const auto& wanted = context.options().clean;
  const bool is_json = context.options().json;
  const auto report = driver::clean_up(context, wanted, [&](const std::string& why) {
    if (!is_json) context.note("note: " + why);
  });
  if (is_json) {
    context.print_json(to_json(report, wanted.dry_run));
    return core::ExitCode::ok;
  }
  Table table;
  table.add({wanted.dry_run ? "TO REMOVE" : "REMOVED", "", "SIZE"});
  for (const auto& item : report.removed)
    table.add(
        {item.kind, shorten_digests(item.name), item.bytes ? core::format_bytes(item.bytes) : ""});
  if (!table.empty()) context.print(table.render(context.paint()));
  context.print((wanted.dry_run ? "would free " : "freed ") + core::format_bytes(report.freed) +
                "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
