#include "report/notebook_cells.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/text.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

/// Elements that neither run nor load anything in a page whose policy allows no requests. Others
/// do: <link rel="preconnect"> and <iframe> open connections whatever the policy says.
constexpr std::string_view harmless_elements =
    " a abbr b blockquote br caption center circle clippath code col colgroup dd defs desc details "
    "div dl dt ellipse em figcaption figure font g h1 h2 h3 h4 h5 h6 hr i img kbd label li line "
    "lineargradient mark meter ol p path pattern pre polygon polyline progress radialgradient rect "
    "s samp section small span stop strong style sub summary sup svg table tbody td text "
    "tfoot th thead title tr tspan u ul ";

/// Returns a text that notebooks write as one, or as a list of its lines.
std::string joined_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  for (const auto& line : value) text += line.get<std::string>();
  return text;
}

/// Removes the colours of a terminal.
std::string without_colours(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\x1b[") == 0)
      i = std::min(text.find('m', i), text.size());
    else
      plain += text[i];
  }
  return plain;
}

bool is_base64(const std::string& text) {
  return text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n") ==
         std::string::npos;
}

/// Returns the first element of the HTML that is not harmless, or an empty text.
std::string other_element(const std::string& html) {
  for (auto at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const auto begin = at + 1 + (html.compare(at + 1, 1, "/") == 0);
    if (begin >= html.size() || !std::isalpha(static_cast<unsigned char>(html[begin]))) continue;
    const auto name = core::lower(
        std::string_view(html).substr(begin, html.find_first_of(" \t\n\f\r/>", begin) - begin));
    if (harmless_elements.find(" " + name + " ") == harmless_elements.npos)
      return name.substr(0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"));
  }
  return {};
}

/// Returns null for an output that has neither a text nor a picture.
json output_entry(const json& output) {
  const auto kind = output.at("output_type").get<std::string>();
  if (kind == "stream") return {{"t", without_colours(joined_text(output.at("text")))}};
  if (kind == "error") {
    std::string text;
    for (const auto& line : output.at("traceback")) text += line.get<std::string>() + "\n";
    return {{"t", without_colours(text)}};
  }
  const auto& data = output.at("data");
  if (data.contains("image/png"))
    if (auto picture = joined_text(data["image/png"]); is_base64(picture))
      return {{"p", std::move(picture)}};
  auto plain = data.contains("text/plain") ? joined_text(data["text/plain"]) : std::string();
  if (data.contains("text/html")) {
    auto html = joined_text(data["text/html"]);
    const auto other = other_element(html);
    if (other.empty()) return {{"h", std::move(html)}};
    plain += (plain.empty() ? "" : "\n") + ("(HTML with <" + other.substr(0, 20) +
                                            ">, which could run or load something, is left "
                                            "out: display a picture to have it here)");
  }
  return plain.empty() ? json() : json{{"t", std::move(plain)}};
}

}  // namespace

json notebook_cells(std::string_view text, std::size_t max_bytes) try {
  auto cells = json::array();
  std::size_t bytes = 0;
  const auto notebook = core::parse_json(text);
  for (const auto& cell : notebook.at("cells")) {
    json entry{{"k", cell.at("cell_type").get<std::string>()},
               {"s", joined_text(cell.at("source"))}};
    const auto outputs = cell.value("outputs", json::array());
    for (const auto& output : outputs)
      if (auto made = output_entry(output); !made.is_null()) entry["o"].push_back(std::move(made));
    bytes += entry.dump(-1, ' ', false, json::error_handler_t::replace).size();
    if (bytes > max_bytes) return nullptr;
    cells.push_back(std::move(entry));
  }
  return cells;
} catch (const json::exception&) {
  return nullptr;
}

}  // namespace pipeline::report
