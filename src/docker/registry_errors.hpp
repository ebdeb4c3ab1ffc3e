/// @file
/// What a registry's refusal means, as an engine passes it on, and what a user can do about it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// Advice for a text from a registry, or from the way to it; none for what is not known.
/// @param registry its host as images name it
std::vector<std::string> registry_advice(std::string_view text, std::string_view registry);

/// Whether the registry knows who asks too little, or too well: not logged in, wrong password, not
/// allowed.
bool is_refusal(std::string_view text);

/// The same for a push, of which more is known.
/// @param config the file that `docker login` writes
/// @param logged_in it has credentials for that registry
std::vector<std::string> push_advice(std::string_view text, std::string_view reference,
                                     const std::filesystem::path& config, bool logged_in);

}  // namespace pipeline::docker
