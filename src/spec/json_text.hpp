/// @file
/// The little that JSON allows and YAML does not.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::spec {

/// The JSON text with spaces for tabs between its tokens, and with characters for pairs of
/// surrogates (`\ud83d\ude00`) in its texts. What stands in a line stays there; columns too, but
/// behind such a pair.
std::string json_as_yaml(std::string_view json);

}  // namespace pipeline::spec
