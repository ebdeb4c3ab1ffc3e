/// @file
/// The lease of a process on the blobs that it uses in a remote store: no cleaning on any machine
/// (remote_cache/store_cleaning.hpp) removes these blobs. The protocol needs no conditional writes
/// of the server.
///
///   leases/RUN.ID.json         `owner`; `knows`: the cleanings that the process has seen;
///                              `needs`: the keys of these cleanings that must stay. Written every
///                              few seconds; a lease that is no longer written is that of a killed
///                              process
///   cleanings/ID/keys.json     the keys that a cleaning is about to remove
///   cleanings/ID/closed        written by a cleaning before it reads the `needs` of all leases and
///                              removes the other keys
///
/// A cleaning writes its keys, and waits until each lease `knows` the cleaning. A process that
/// needs one of the keys first writes the key into its lease, and then looks for `closed`. If there
/// is no `closed`, the cleaning will read the lease after this write, and the key stays. Otherwise
/// the process waits until the cleaning has ended. A killed cleaning counts as ended some time
/// after it wrote `closed`.
///
/// Everybody who can write to the store can write leases and cleanings, too. A lease that `pipe`
/// did not write counts as that of a process that never answers.
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
#include "blobs/key_set.hpp"

namespace pipeline::blobs {

inline constexpr const char* leases_folder = "leases/";
inline constexpr const char* cleanings_folder = "cleanings/";
std::string keys_of_cleaning(const std::string& id);
std::string end_of_cleaning(const std::string& id);  ///< The key of `closed`.

struct LeaseTimes {
  std::chrono::milliseconds renewal{10'000};
  std::chrono::milliseconds lifetime{120'000};  ///< The process of an older lease counts as dead.
  /// A cleaning begins no removal once `closed` is older.
  std::chrono::milliseconds max_removal{60'000};
  std::chrono::milliseconds max_end{2000};  ///< For how long end() waits for the store.
};

/// The content of a lease, as other processes read it.
struct LeaseRecord {
  std::string owner;  ///< The run.
  std::set<std::string> knows, needs;
  std::string text;  ///< Differs after each renewal.
};
/// Reads a lease. For a text that `pipe` did not write, returns one with empty `knows` and `needs`.
LeaseRecord read_lease(const std::string& key, const std::string& text);
/// Returns all leases by key.
async::Task<std::map<std::string, LeaseRecord>> find_leases(BlobStore& store);

/// All functions throw EnvironmentError if the store cannot be reached. The owner awaits end()
/// before the destruction.
class StoreLease {
 public:
  /// Makes no request before the first use().
  /// @param store used by this object alone, so that its calls can be cancelled
  /// @param run cancels calls when it is stopped; end() is cancelled by an immediate stop only, and
  /// the lease then ends by its lifetime. May be null
  /// @param on_lost called with each key in use that others may have removed, because the process
  /// could not reach the store for too long
  StoreLease(asio::io_context& loop, std::unique_ptr<BlobStore> store, std::string owner,
             core::CancelSource* run, std::function<void(const std::string& key)> on_lost,
             LeaseTimes times = {});

  /// Keeps the blob of the key, if there is one, from being removed until end(). Returns false if a
  /// cleaning was about to remove the key, and has now ended: the blob may be gone.
  async::Task<bool> use(std::string key);
  /// Removes the lease. Waits for the store for a short time only (LeaseTimes::max_end).
  async::Task<> end();

 private:
  struct Cleaning {
    std::set<std::string> keys;
    std::set<std::string> kept;  ///< Keys in use that the cleaning will not remove.
    bool is_closed = false;      ///< The cleaning wrote `closed` before this process knew it.
  };
  async::Task<> begin();
  async::Task<> remove_earlier();
  std::string key() const { return leases_folder + owner_ + "." + id_ + ".json"; }
  async::Task<> renew();
  async::Task<std::set<std::string>> find_cleanings();
  async::Task<> answer_new_cleanings();
  async::Task<> answer(std::string id);
  async::Task<> write();
  async::Task<bool> keep(std::string id, std::string key);
  async::Task<> wait_for_end(std::string id);
  void lose_all();

  asio::io_context& loop_;
  core::CancelSource given_up_;      ///< Cancels the calls of the store before end().
  core::CancelSource end_given_up_;  ///< Cancels the last call, which end() makes.
  std::optional<core::CancelSource::Listener> run_;
  const std::unique_ptr<BlobStore> store_;
  const std::string owner_, id_;
  const std::function<void(const std::string&)> on_lost_;
  const LeaseTimes times_;
  KeySet used_;
  std::map<std::string, Cleaning> cleanings_;
  std::uint64_t writes_ = 0;
  std::chrono::system_clock::time_point written_{};  ///< System time, which includes suspension.
  async::Semaphore writing_{1}, beginning_{1};
  core::CancelSource ended_;
  std::unique_ptr<async::JoinableTask> renewal_;
};

}  // namespace pipeline::blobs
