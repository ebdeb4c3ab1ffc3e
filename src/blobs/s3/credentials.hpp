/// @file
/// Finds an S3 server's keys as Amazon's own programs do: in the environment, ~/.aws/credentials
/// and ~/.aws/config, and from programs configured there.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "async/single_flight.hpp"
#include "async/task.hpp"
#include "blobs/s3/signing.hpp"

namespace pipeline::blobs::s3 {

/// Values by section and key. Indented lines are left out.
using IniFile = std::map<std::string, std::map<std::string, std::string>>;
IniFile parse_ini(std::string_view text);

struct FoundKeys {
  Keys keys;
  std::string origin;  ///< For messages: `the environment (AWS_ACCESS_KEY_ID)`.
  std::optional<std::chrono::system_clock::time_point> expiry;  ///< Expiry time, if known.
};

/// Parses the output of a `credential_process` (Version 1). Throws EnvironmentError if it has no
/// keys.
/// @param program the command line, for messages
FoundKeys parse_process_output(std::string_view text, const std::string& program);

class CredentialSource {
 public:
  /// @param profile a profile of ~/.aws, which then takes precedence over the environment's keys;
  /// if empty, the environment, then AWS_PROFILE or the default profile
  CredentialSource(asio::io_context& loop, std::string profile)
      : profile_(std::move(profile)), found_(loop) {}
  /// Returns the keys; fetches them again when they are about to expire, once for all callers that
  /// wait. Throws EnvironmentError that lists the places that were searched.
  async::Task<FoundKeys> find();

 private:
  std::string profile_;
  async::SingleFlight<FoundKeys> found_;  ///< The one entry has an empty name.
};

/// Returns the region that the environment or the profile names; empty if neither does.
std::string region_of(const std::string& profile);

}  // namespace pipeline::blobs::s3
