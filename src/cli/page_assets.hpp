/// @file
/// The style and script that all pages share (templates/page).
#pragma once

#include <initializer_list>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::cli {

/// Returns the shared style and then the page's own.
/// @param own a template, such as `serve/serve.css`; empty: none
std::string page_style(const char* own);
/// Returns the shared script and then the page's own, which starts the page.
/// @param own templates, such as `report/report.js`
std::string page_script(std::initializer_list<const char*> own);
/// Returns a run as one HTML file, from the data that report::report_data() returns.
std::string report_page(const nlohmann::json& data);

}  // namespace pipeline::cli
