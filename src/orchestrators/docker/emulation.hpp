/// @file
/// Finds out whether a machine can execute programs of another processor architecture.
#pragma once

#include <filesystem>
#include <string>

namespace pipeline::orchestrators::docker_engine {

/// Returns true if it is certain that this machine's kernel cannot execute the platform's programs:
/// the architecture is another one, and no emulator is registered (binfmt_misc of the kernel's
/// admin-guide). False if it can, or if that cannot be seen from here.
/// @param platform     `linux/arm64`, `linux/amd64/v2`
/// @param architecture the machine's, in Go's words (`amd64`), as engines name it
/// @param proc         where procfs is mounted
bool cannot_execute(const std::string& platform, const std::string& architecture,
                    const std::filesystem::path& proc = "/proc");

}  // namespace pipeline::orchestrators::docker_engine
