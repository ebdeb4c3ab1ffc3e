/// @file
/// The engine's port to a store that machines share: what steps have made, by the steps' keys.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "net/asio.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

struct SharedOutput {
  store::OutputRecord record;
  bool is_executable = false;  ///< Of a file.
};

/// What a step has made, on whatever machine.
struct SharedResult {
  std::string run;  ///< Of that machine.
  std::vector<SharedOutput> outputs;
};

/// What the store has of one result is not what it should be; it says nothing of others.
class DamagedResult : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// All throw EnvironmentError where the store cannot be asked.
class SharedResults {
 public:
  virtual std::string name() const = 0;  ///< For people: `s3://team/pipe`.

  /// Throws, with what to do, unless results can be read and written.
  virtual Task<> check() = 0;
  /// Nothing if nobody has shared one. Throws DamagedResult for a record that makes no sense.
  virtual Task<std::optional<SharedResult>> find(std::string key, CancelSource* cancel) = 0;
  /// Makes the file or folder `to`, where nothing is. Throws DamagedResult if its content is not there; whether it is the right one the caller sees.
  virtual Task<> fetch(const SharedOutput& output, std::filesystem::path to, CancelSource& cancel) = 0;
  /// What fetch() has brought was not what the record says: should this machine make it, it takes the other's place.
  virtual void distrust(const SharedOutput& output) = 0;
  /// Sends what the step has made, as far as the store lacks it, then the record.
  virtual Task<> publish(store::CacheEntry entry, CancelSource& cancel) = 0;

  virtual ~SharedResults() = default;
};

}  // namespace pipeline::engine
