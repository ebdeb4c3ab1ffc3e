/// @file
/// Fetches remote inputs into the artifact store: once and verified. A download by URL continues
/// after a cut connection.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/single_flight.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/digest.hpp"
#include "engine/cache/cache_exchange.hpp"
#include "engine/services.hpp"
#include "fetch/sources.hpp"
#include "lockfile/locked_data.hpp"

namespace pipeline::engine {

/// Folder of incomplete downloads in the state folder. Without a run in progress, none is in use.
inline constexpr auto downloads_folder = "downloads";

/// The first line of Downloads::changes_since().
inline constexpr std::string_view changed_at_source_line =
    "changed at the source since it was locked";

class Downloads {
 public:
  /// Keeps references to the objects in `services`, the events and the stop.
  Downloads(const Services& services, EventSink& events, core::CancelSource& stop);
  ~Downloads();

  /// Returns the artifact with the content of the URL, which is fetched unless the store has it.
  /// Throws EnvironmentError if it cannot be fetched, or differs from `pin`.
  /// @param stop ends this download alone
  async::Task<core::Digest> fetch(DataSpec data, lockfile::LockedData pin,
                                  core::CancelSource& stop);
  /// Fetches the content that the address has now. Throws EnvironmentError if it changes meanwhile.
  /// @param state what state() has returned
  async::Task<core::Digest> fetch_new(DataSpec data, fetch::ContentState state);
  /// Returns the means for a step's orchestrator to fetch the content by itself; nothing for an
  /// address that only this machine reaches. The value must not outlive this object.
  std::optional<orchestrators::RemoteContent> remote(const DataSpec& data,
                                                     const lockfile::LockedData& pin);
  /// Returns the size of a file that was fetched.
  std::uint64_t size_of(const core::Digest& digest) const;
  /// Asks the server for the content's size, ETag and date. Throws EnvironmentError also if the
  /// server gives nothing that would show a change.
  async::Task<fetch::ContentState> state(const DataSpec& data, core::CancelSource& stop,
                                         async::RetryPolicy retries);
  /// Returns lines that describe the changes, by file for a folder whose list was kept.
  std::vector<std::string> changes_since(const lockfile::LockedData& locked,
                                         const lockfile::LockedData& now,
                                         const fetch::ContentState& state) const;
  /// Fetches an output that only the remote cache has. Throws DamagedCacheEntry if its content
  /// differs from the record, and EnvironmentError if it cannot be fetched.
  /// @param cache null: an EnvironmentError says that the run has no remote store
  async::Task<> fetch_output(RemoteOutput output, RemoteCache* cache, asio::thread_pool& pool);
  /// Fetches a published artifact unless the store has it. Throws EnvironmentError.
  /// @param cache the cache that has the name; null: this state folder
  async::Task<> fetch_named(const DataSpec& data, const store::PublishedVersion& version,
                            RemoteCache* cache, asio::thread_pool& pool);

 private:
  struct WantedContent;
  async::Task<std::vector<orchestrators::RemoteFile>> files(fetch::DataAddress address);
  async::SingleFlight<core::Digest>& flights(const asio::any_io_executor& executor);
  fetch::Sources& sources(const asio::any_io_executor& executor);
  async::Task<core::Digest> share_download(const WantedContent& wanted);
  async::Task<core::Digest> download(const WantedContent& wanted);
  async::Task<> receive_file(const WantedContent& wanted, const fetch::DataAddress& from,
                             const std::filesystem::path& path);
  async::Task<> receive_folder(const WantedContent& wanted, const fetch::DataAddress& from,
                               const std::filesystem::path& folder);
  async::Task<core::Digest> keep(const WantedContent& wanted, const std::filesystem::path& path);
  core::EnvironmentError wrong_content(const WantedContent& wanted, const std::string& found) const;
  core::EnvironmentError stopped(const DataSpec& data) const;

  store::ArtifactStore& artifacts_;
  store::RunStore& store_;
  const std::filesystem::path folder_;
  const settings::RemoteStoreSettings remote_store_;
  EventSink& events_;
  core::CancelSource& stop_;
  // Created at the first use, because most runs download nothing.
  std::unique_ptr<fetch::Sources> sources_;
  std::unique_ptr<async::SingleFlight<core::Digest>> flights_;
  std::unique_ptr<asio::thread_pool> pool_;
};

}  // namespace pipeline::engine
