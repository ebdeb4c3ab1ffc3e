/// @file
/// An artifact whose content a remote store has under its digest, and this machine perhaps not.
/// Each consumer compares the content with the digest.
#pragma once

#include <cstdint>
#include <string>

namespace pipeline::model {

struct Elsewhere {
  bool is_directory = false;
  bool is_executable = false;  ///< Set for files only.
  std::uint64_t bytes = 0;     ///< The size of the file, or of the folder's files.
  std::string store;  ///< The remote store, as the text of settings::to_json(); has no secret.
};

}  // namespace pipeline::model
