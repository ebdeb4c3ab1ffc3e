/// @file
/// Pictures that a browser may show.
#pragma once

#include <string_view>

namespace pipeline::report {

/// Returns the content type of a picture by its first bytes; null for any other file. SVG, which
/// can hold scripts, is none of them.
const char* picture_type(std::string_view bytes);

/// Returns true if the name of a file ends as those of pictures do.
bool is_picture_name(std::string_view file_name);

}  // namespace pipeline::report
