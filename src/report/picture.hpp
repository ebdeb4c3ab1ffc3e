/// @file
/// Pictures that a browser may show.
#pragma once

#include <string_view>

namespace pipeline::report {

/// Returns the content type of a picture by its first bytes; null for any other file, and for SVG,
/// which can hold scripts.
const char* picture_type(std::string_view bytes);

/// Returns true if the name of a file has the extension of a picture.
bool is_picture_name(std::string_view file_name);

}  // namespace pipeline::report
