/// @file
/// The XML in which object stores answer HTTP requests, also with errors. All functions are pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::blobs {

/// Returns the text of the first element of this name, with entities decoded; empty if there is no
/// such element.
std::string xml_text(std::string_view xml, std::string_view element);

/// Returns the texts of all elements of this name, which are not nested, in order.
std::vector<std::string> xml_texts(std::string_view xml, std::string_view element);
/// Returns the contents of all elements of this name as they are written, with the elements in
/// them.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view element);

/// Returns true if a refused request can be retried. @param code text of the XML element `Code`
bool is_retryable(long status, std::string_view code);

}  // namespace pipeline::blobs
