/// @file
/// Identifiers of documents, derived from their content.
#pragma once

#include <string>

namespace pipeline::core {

/// Formats a digest, in hex of at least 32 digits, as a UUID of version 8 (RFC 9562), whose bits
/// are free.
inline std::string uuid_of(std::string digest) {
  digest[12] = '8';
  digest[16] = 'a';
  return digest.substr(0, 8) + "-" + digest.substr(8, 4) + "-" + digest.substr(12, 4) + "-" +
         digest.substr(16, 4) + "-" + digest.substr(20, 12);
}

}  // namespace pipeline::core
