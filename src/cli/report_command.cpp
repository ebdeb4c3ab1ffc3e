// `pipe report`: writes a run as one HTML file.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/page_assets.hpp"
#include "core/file.hpp"
#include "core/quantity.hpp"
#include "driver/session.hpp"
#include "report/report.hpp"

namespace pipeline::cli {

core::ExitCode report_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  const auto run = driver::find_run(context, context.options().run, drivers, store);
  const auto data =
      report::report_data(store, context.artifacts(), run, report::limits_for(run.steps));
  if (options.json) {
    context.print_json(data);
    return core::ExitCode::ok;
  }
  const auto page = report_page(data);
  const auto& out = options.copy_to;
  if (out == "-") {
    context.write(page);
    return core::ExitCode::ok;
  }
  const std::filesystem::path own_name = "report-" + run.id + ".html";
  const auto file = std::filesystem::absolute(out.empty() ? own_name : out);
  core::write_named_file(file, page);
  context.print(shown_path(file) + "  " + core::format_bytes(page.size()) + "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
