/// @file
/// The style and script that all pages share (templates/page).
#pragma once

#include <initializer_list>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::cli {

/// @param own a style of the page itself, such as `serve/serve.css`; empty: none
std::string page_style(const char* own);
/// @param own the script that starts the page, such as `report/report.js`
std::string page_script(std::initializer_list<const char*> own);
/// Returns a run as one HTML file. @param data as report::report_data() returns it
std::string report_page(const nlohmann::json& data);

}  // namespace pipeline::cli
