#include "cli/page_assets.hpp"

#include "report/report.hpp"
#include "templates/templates.hpp"

namespace pipeline::cli {
namespace {

std::string asset_text(const char* name) { return templates::template_text(name, {}); }

}  // namespace

std::string page_style(const char* own) {
  auto style = asset_text("page/page.css");
  if (*own) style += asset_text(own);
  return style;
}

std::string page_script(std::initializer_list<const char*> own) {
  std::string script = "\"use strict\";\n(() => {\n";
  for (const auto* name :
       {"page/texts.js", "page/log.js", "page/graph.js", "page/timeline.js", "page/path.js",
        "page/curves.js", "page/leaderboard.js", "page/scatter.js", "page/metrics.js",
        "page/notebook.js", "page/steps.js", "page/run.js"})
    script += asset_text(name);
  for (const auto* name : own) script += asset_text(name);
  return script + "})();\n";
}

std::string report_page(const nlohmann::json& data) {
  return report::render_report(
      data, {asset_text("report/report.html"), page_style(""), page_script({"report/report.js"})});
}

}  // namespace pipeline::cli
