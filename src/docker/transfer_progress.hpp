/// @file
/// What an engine tells while it pulls or pushes an image.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "docker/json_lines.hpp"

namespace pipeline::docker {

/// What a push came to.
struct Pushed {
  std::string digest;  ///< `sha256:...` of the manifest that the registry has now; empty if the
                       ///< engine did not say.
  unsigned sent = 0;   ///< Layers ...
  std::uint64_t bytes = 0;  ///< ... and their size, unpacked.
  unsigned there = 0;       ///< Layers that the registry had.
};

/// Follows the messages of a pull or push: what is worth a line, what it comes to, and the error
/// that a status of 200 can hide.
class TransferProgress {
 public:
  /// @param what for the error: `push the image x`
  TransferProgress(std::string what, std::string registry,
                   std::function<void(std::string_view)> on_line);
  void feed(std::string_view bytes) { lines_.feed(bytes); }
  /// Throws EngineError if the transfer failed.
  void finish();
  const Pushed& pushed() const { return pushed_; }

 private:
  void take(const nlohmann::json& message);
  void count(const std::string& layer, const std::string& status);

  std::string what_, registry_, error_;
  std::function<void(std::string_view)> on_line_;
  std::map<std::string, std::uint64_t> sizes_;  ///< Of the layers that are being sent.
  Pushed pushed_;
  JsonLines lines_;
};

}  // namespace pipeline::docker
