/// @file
/// Reads content at addresses of others' servers, as sources/ does on the driver's machine:
/// redirections are followed, several connections read a part each, and one that was cut is
/// continued. Blocking, for a static program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "stager/transfer.hpp"

namespace pipeline::stager {

/// The driver can bring what a pod cannot reach, so that a pod does not try for long.
inline constexpr TransferRetries source_retries{std::chrono::milliseconds(300),
                                                std::chrono::milliseconds(2'000), 3};

class SourceReader {
 public:
  /// @param authorities CAs for servers' certificates, PEM
  explicit SourceReader(std::string authorities, TransferRetries policy = source_retries)
      : authorities_(std::move(authorities)), policy_(policy) {}

  /// Writes a new file with the content of `{"shown", "url", "size"}`: the address for messages,
  /// because a URL's query may be a secret, and the size, or 0 if it is not known. Throws
  /// TransferError, EnvironmentError.
  void read_file(const nlohmann::json& source, const std::filesystem::path& to) const;
  /// Makes a folder of the files `[{"path", "url"}, ...]`. Throws TransferError, EnvironmentError.
  void read_folder(const nlohmann::json& files, const std::filesystem::path& to) const;

 private:
  std::string authorities_;
  TransferRetries policy_;
};

}  // namespace pipeline::stager
