/// @file
/// The remote store, in which machines share artifacts, results and the records of detached runs.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::settings {

/// A profile's `artifact_store`, without secrets.
struct RemoteStoreSettings {
  std::string url;  ///< `s3://BUCKET[/PREFIX]`, `file:///FOLDER`, ...; empty: there is none.
  /// The other keys, named as in blobs::Kind::options of the address.
  std::map<std::string, std::string> options;

  bool is_given() const { return !url.empty(); }
  std::string option(const std::string& name) const {
    const auto found = options.find(name);
    return found == options.end() ? std::string() : found->second;
  }
  bool operator==(const RemoteStoreSettings&) const = default;
};

nlohmann::json to_json(const RemoteStoreSettings& store);
/// Reads back what to_json() wrote; for any other JSON, returns a store without an address.
RemoteStoreSettings remote_store_of(const nlohmann::json& stored);

}  // namespace pipeline::settings
