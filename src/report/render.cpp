#include <nlohmann/json.hpp>

#include "core/base64.hpp"
#include "core/digest.hpp"
#include "report/report.hpp"

namespace pipeline::report {
namespace {

/// Returns JSON without characters that have a meaning in HTML.
std::string embedded(const nlohmann::json& data) {
  const auto text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<': safe += "\\u003c"; break;
      case '>': safe += "\\u003e"; break;
      case '&': safe += "\\u0026"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

/// Returns the source expression that allows the text in a Content-Security-Policy.
std::string source_hash(std::string_view text) {
  const auto digest = core::sha256(text);
  return "'sha256-" +
         core::encode_base64(
             {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()}) +
         "'";
}

/// Fills in each `{{NAME}}` of the text, but not those in values.
std::string filled(std::string_view text,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string result;
  while (!text.empty()) {
    const auto open = text.find("{{");
    result += text.substr(0, open);
    if (open == text.npos) break;
    const auto close = text.find("}}", open);
    const auto name = text.substr(open + 2, close - open - 2);
    for (const auto& [known, value] : values)
      if (known == name) result += value;
    text.remove_prefix(close == text.npos ? text.size() : close + 2);
  }
  return result;
}

}  // namespace

std::string render_report(const nlohmann::json& data, const ReportTemplates& templates) {
  const auto& run = data.at("run");
  return filled(templates.page, {{"title", escaped(run.at("pipeline").get<std::string>() + " " +
                                                   run.at("id").get<std::string>())},
                                 {"style_hash", source_hash(templates.style)},
                                 {"script_hash", source_hash(templates.script)},
                                 {"style", templates.style},
                                 {"script", templates.script},
                                 {"data", embedded(data)}});
}

std::string framed_report(const std::string& page, const std::string& title) {
  return "<iframe title=\"" + escaped(title) +
         "\" sandbox=\"allow-scripts\" style=\"width: 100%; height: 40rem; border: 1px solid "
         "#8888\" srcdoc=\"" +
         escaped(page) + "\"></iframe>\n";
}

}  // namespace pipeline::report
