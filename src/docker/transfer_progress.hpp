/// @file
/// Reads an engine's messages while it pulls or pushes an image.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "docker/json_lines.hpp"

namespace pipeline::docker {

/// The result of a push.
struct Pushed {
  std::string digest;  ///< `sha256:...` of the manifest that the registry has now; empty if the
                       ///< engine did not report it.
  unsigned sent = 0;   ///< Number of layers that were pushed.
  std::uint64_t bytes = 0;  ///< Unpacked size of the pushed layers.
  unsigned existing = 0;    ///< Number of layers that the registry already had.
};

/// Reads the messages of a pull or push: selects lines for the user, computes the result, and finds
/// errors, which the engine reports after it has sent the status 200.
class TransferProgress {
 public:
  /// @param what completes error messages: `push the image x`
  TransferProgress(std::string what, std::string registry,
                   std::function<void(std::string_view)> on_line);
  void feed(std::string_view bytes) { lines_.feed(bytes); }
  /// Throws EngineError if the transfer failed.
  void finish();
  const Pushed& pushed() const { return pushed_; }

 private:
  void take(const nlohmann::json& message);
  void count(const std::string& layer, const std::string& status);
  void report_bytes(const std::string& status, const std::string& layer, std::uint64_t moved,
                    std::uint64_t total);

  std::string what_, registry_, error_;
  std::function<void(std::string_view)> on_line_;
  std::map<std::string, std::uint64_t> sizes_;  ///< Bytes of each layer, as far as reported.
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>
      moved_;                   ///< Per layer: the bytes that were transferred, and all bytes.
  std::uint64_t reported_ = 0;  ///< Bytes in the last progress line.
  Pushed pushed_;
  JsonLines lines_;
};

}  // namespace pipeline::docker
