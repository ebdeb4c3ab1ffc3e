/// @file
/// The addresses of remote stores as users write them. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::blobs {

/// A setting of a kind of store, written beside the address, such as `region`.
struct Option {
  enum class Type { text, boolean, file, server, choice };  ///< `server`: `https://HOST[:PORT]`.
  std::string name;
  Type type = Type::text;
  std::vector<std::string> values = {};  ///< Of a `choice`.
};

/// Returns the address as RemoteStoreSettings::url has it; nothing if no kind of store has such
/// addresses. @param base folder at which relative paths begin
std::optional<std::string> read_address(const std::string& text, const std::filesystem::path& base);

/// Returns the options of the address's kind; for an empty address those of all kinds.
std::vector<Option> options_of(std::string_view url);

/// Returns true if pods that share no files with this machine can reach the store at this address.
bool can_presign(std::string_view url);

/// Returns one address of each kind.
std::vector<std::string> example_addresses();

}  // namespace pipeline::blobs
