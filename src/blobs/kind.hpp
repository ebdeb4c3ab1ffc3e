/// @file
/// Opens remote stores by the schemes of their addresses.
#pragma once

#include <memory>
#include <span>

#include "blobs/addresses.hpp"
#include "blobs/blob_store.hpp"

namespace pipeline::blobs {

/// A kind of store.
struct Kind {
  std::string_view scheme;   ///< Text with which all addresses begin.
  std::string_view example;  ///< An example of an address.
  bool can_presign;          ///< BlobStore::pod_access() is not null.
  std::vector<Option> options;
  /// Implements blobs::read_address() for addresses of this kind.
  std::optional<std::string> (*read_address)(const std::string& text,
                                             const std::filesystem::path& base);
  std::unique_ptr<BlobStore> (*open)(asio::io_context& loop,
                                     const settings::RemoteStoreSettings& settings,
                                     async::RetryPolicy retry_policy);
};

/// Returns the kinds of the line `pipeline_blob_stores` of src/CMakeLists.txt.
std::span<const Kind* const> kinds();

/// Returns the store of these settings. Makes no request. Throws InputError for invalid options,
/// and for an address that belongs to no kind of store.
std::unique_ptr<BlobStore> open(asio::io_context& loop,
                                const settings::RemoteStoreSettings& settings,
                                async::RetryPolicy retry_policy = store_retries);

}  // namespace pipeline::blobs
