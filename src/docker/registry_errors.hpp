/// @file
/// Explains a registry's refusal, as reported by an engine, and gives advice.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// Returns advice for a text from a registry or the network; none for an unknown text.
/// @param registry the registry's host, as in image references
std::vector<std::string> registry_advice(std::string_view text, std::string_view registry);

/// Returns true if the registry refused access: it rejected the credentials, or got none.
bool is_refusal(std::string_view text);

/// Returns advice for a failed push. If the registry refused it, the advice depends on whether
/// docker's configuration has credentials; otherwise it is that of registry_advice().
/// @param config the file that `docker login` writes
/// @param logged_in the file has credentials for the registry
std::vector<std::string> push_advice(std::string_view text, std::string_view reference,
                                     const std::filesystem::path& config, bool logged_in);

}  // namespace pipeline::docker
