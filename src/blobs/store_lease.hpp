/// @file
/// The lease of a process on what it uses in a remote store, so that no cleaning on any machine
/// (remote_cache/store_cleaning.hpp) removes it. Servers need no conditional writes for it.
///
///   leases/RUN.ID.json         `owner`; `knows`: the cleanings that the process has seen;
///                              `needs`: the keys of those cleanings that stay. Written every few
///                              seconds, so that a process that was killed is known by its silence
///   cleanings/ID/keys.json     the keys that a cleaning is about to remove
///   cleanings/ID/closed        since it is there, `needs` are counted and the other keys removed
///
/// A cleaning writes its keys, and waits until each lease knows it. A process that needs one of the
/// keys writes that into its lease, and looks for `closed` then. If `closed` is not there, then the
/// cleaning reads the lease after that write, and the key stays. Otherwise the process waits until
/// the cleaning has ended. A cleaning that was killed has ended some time after it wrote `closed`.
///
/// Everybody who can write to the store can write there, too: a lease that pipe did not write
/// counts as that of a process that never answers.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/joinable_task.hpp"
#include "async/semaphore.hpp"
#include "blobs/blob_store.hpp"

namespace pipeline::blobs {

inline constexpr const char* leases_folder = "leases/";
inline constexpr const char* cleanings_folder = "cleanings/";
std::string keys_of_cleaning(const std::string& id);
std::string end_of_cleaning(const std::string& id);  ///< The key of `closed`.

struct LeaseTimes {
  std::chrono::milliseconds renewal{10'000};
  std::chrono::milliseconds lifetime{120'000};  ///< A lease that is as old has no process.
  /// A cleaning begins no removal when `closed` is as old.
  std::chrono::milliseconds max_removal{60'000};
  std::chrono::milliseconds max_end{2000};  ///< The end of a run waits no longer for the store.
};

/// A lease as others read it.
struct LeaseRecord {
  std::string owner;  ///< The run.
  std::set<std::string> knows, needs;
  std::string text;  ///< Differs after each renewal.
};
/// Returns a lease that knows nothing for a text that pipe did not write.
LeaseRecord read_lease(const std::string& key, const std::string& text);
/// Returns all leases by key.
async::Task<std::map<std::string, LeaseRecord>> find_leases(BlobStore& store);

/// All functions throw EnvironmentError if the store cannot be reached. The owner awaits end()
/// before the destruction.
class StoreLease {
 public:
  /// Makes no request before the first use().
  /// @param store of this object alone, so that its calls can be given up
  /// @param run its stop gives calls up; end() is given up by a stop at once only, and the lease
  /// then ends by its lifetime. May be null
  /// @param on_lost called with a key in use that others may have removed, since the process was
  /// cut off from the store for too long
  StoreLease(asio::io_context& loop, std::unique_ptr<BlobStore> store, std::string owner,
             core::CancelSource* run, std::function<void(const std::string& key)> on_lost,
             LeaseTimes times = {});

  /// Keeps what the store has under the key, from now on until end(). Returns false if a cleaning
  /// was about to remove the key, and has now ended: what was known of the store may be wrong.
  async::Task<bool> use(std::string key);
  /// Gives everything up. Waits for the store for a short time only.
  async::Task<> end();

 private:
  struct Cleaning {
    std::set<std::string> keys;
    std::set<std::string> kept;  ///< Keys that are needed, and counted.
    bool is_closed = false;      ///< It was closed before this process had answered.
  };
  async::Task<> begin();
  async::Task<> remove_earlier();
  std::string key() const { return leases_folder + owner_ + "." + id_ + ".json"; }
  async::Task<> renew();
  async::Task<std::set<std::string>> find_cleanings();
  async::Task<> look();
  async::Task<> answer(std::string id);
  async::Task<> write();
  async::Task<bool> keep(std::string id, std::string key);
  async::Task<> wait_for_end(std::string id);
  void lose_all();

  asio::io_context& loop_;
  core::CancelSource given_up_;      ///< Ends the calls of the store before end().
  core::CancelSource end_given_up_;  ///< Ends the last one.
  std::optional<core::CancelSource::Listener> run_;
  const std::unique_ptr<BlobStore> store_;
  const std::string owner_, id_;
  const std::function<void(const std::string&)> on_lost_;
  const LeaseTimes times_;
  std::set<std::string> used_;
  std::map<std::string, Cleaning> cleanings_;
  std::uint64_t writes_ = 0;
  std::chrono::system_clock::time_point written_{};  ///< Also counts while the machine sleeps.
  async::Semaphore writing_{1}, beginning_{1};
  core::CancelSource ended_;
  std::unique_ptr<async::JoinableTask> renewal_;
};

}  // namespace pipeline::blobs
