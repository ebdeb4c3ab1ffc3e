/// @file
/// The style and script that all pages share (templates/page).
#pragma once

#include <string>

namespace pipeline::cli {

/// @param own a style of the page itself, such as `serve/serve.css`; empty: none
std::string page_style(const char* own);
/// @param own the script that starts the page, such as `report/report.js`
std::string page_script(std::initializer_list<const char*> own);

}  // namespace pipeline::cli
