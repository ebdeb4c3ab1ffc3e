/// @file
/// Fetches inputs from elsewhere into the artifact store: once and verified. What has a URL is
/// continued where a connection was cut.
#pragma once

#include <memory>
#include <string>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/single_flight.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/digest.hpp"
#include "engine/cache_exchange.hpp"
#include "engine/services.hpp"
#include "net/http.hpp"

namespace pipeline::engine {

class Downloads {
 public:
  /// Keeps references to the objects in `services`, to the events and to the stop, which ends
  /// downloads.
  Downloads(const Services& services, EventSink& events, core::CancelSource& stop);
  ~Downloads();

  /// Returns the artifact with the content of the URL, which is fetched unless the store has it.
  /// Throws EnvironmentError if it cannot be fetched, or has another SHA-256 than `data` says.
  async::Task<core::Digest> fetch(DataSpec data);
  /// Fetches an artifact that has a name, unless the store has it. Throws EnvironmentError if it
  /// cannot be had.
  /// @param cache what has the name; null: this state folder
  async::Task<> fetch_named(const DataSpec& data, const store::PublishedVersion& version,
                            RemoteCache* cache, asio::thread_pool& pool);

 private:
  async::SingleFlight<core::Digest>& flights(const asio::any_io_executor& executor);
  async::Task<core::Digest> download(const DataSpec& data, const core::Digest& digest);
  async::Task<bool> receive(const DataSpec& data, const std::filesystem::path& part,
                            std::string& problem);

  store::ArtifactStore& artifacts_;
  std::filesystem::path folder_;
  EventSink& events_;
  core::CancelSource& stop_;
  std::unique_ptr<net::HttpClient> client_;  ///< Created by the first download, as the next one.
  std::unique_ptr<async::SingleFlight<core::Digest>> flights_;
};

}  // namespace pipeline::engine
