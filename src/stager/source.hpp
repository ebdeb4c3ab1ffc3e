/// @file
/// Reads content from other servers, as fetch/ does on the driver's machine: redirections are
/// followed, several connections read a part each, and an interrupted part is continued. Blocking,
/// for a static program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "stager/transfer.hpp"

namespace pipeline::stager {

/// Few retries, because the driver can upload content that a pod cannot reach.
inline constexpr TransferRetries source_retries{std::chrono::milliseconds(300),
                                                std::chrono::milliseconds(2'000), 3};

class SourceReader {
 public:
  /// @param authorities CAs for servers' certificates, PEM
  explicit SourceReader(std::string authorities, TransferRetries policy = source_retries)
      : authorities_(std::move(authorities)), policy_(policy) {}

  /// Writes a new file with the content of `{"shown", "url", "size"}`: the address for messages,
  /// because a URL's query may be a secret, and the size, 0 if unknown. Throws TransferError,
  /// EnvironmentError.
  void read_file(const nlohmann::json& source, const std::filesystem::path& to) const;
  /// Makes a folder of the files `[{"path", "url"}, ...]`. Throws TransferError, EnvironmentError.
  void read_folder(const nlohmann::json& files, const std::filesystem::path& to) const;

 private:
  std::string authorities_;
  TransferRetries policy_;
};

}  // namespace pipeline::stager
