/// @file
/// Keys of an S3 server, found as Amazon's own programs find them: the environment,
/// ~/.aws/credentials and ~/.aws/config, and programs named there.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "async/task.hpp"
#include "s3/signing.hpp"

namespace pipeline::s3 {

using IniFile =
    std::map<std::string, std::map<std::string, std::string>>;  ///< Values by section and key.
IniFile parse_ini(std::string_view text);

struct FoundKeys {
  Keys keys;
  std::string origin;  ///< For people: `the environment (AWS_ACCESS_KEY_ID)`.
  std::optional<std::chrono::system_clock::time_point> runs_out;  ///< Where that is known.
};

/// The output of a `credential_process` (its Version 1). Throws EnvironmentError for what is none.
FoundKeys parse_process_output(std::string_view text, const std::string& program);

class CredentialSource {
 public:
  /// @param profile of ~/.aws, which then wins over the environment's keys; empty: the environment,
  /// then AWS_PROFILE or the default one
  explicit CredentialSource(std::string profile) : profile_(std::move(profile)) {}
  /// Asked for again when they are about to run out. Throws EnvironmentError that says where they
  /// were looked for.
  async::Task<FoundKeys> find();
  /// Of the environment or the profile; empty: nobody says.
  std::string region() const;

 private:
  std::string profile_;
  std::optional<FoundKeys> found_;
};

}  // namespace pipeline::s3
