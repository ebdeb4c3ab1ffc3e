/// @file
/// Files between this machine and pods that see none of its files: through a bucket. Pods get no
/// keys but URLs, each good for one object and for 7 days at most: nothing that a step could use
/// for anything else ever reaches a cluster. Artifacts are there by digest, as in the store here,
/// and go there once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrators/kubernetes/manifest.hpp"
#include "s3/artifacts.hpp"

namespace pipeline::orchestrators {

class BucketFiles {
 public:
  /// @param artifacts outlives this
  explicit BucketFiles(s3::Artifacts& artifacts)
      : artifacts_(artifacts), bucket_(artifacts.bucket()), pool_(1) {}

  /// Throws EnvironmentError, with what to do, unless objects can be written, read and removed.
  async::Task<> probe() { return artifacts_.probe(); }

  /// Uploads what the attempt reads, as far as the bucket lacks it, and says what the pod has to
  /// carry.
  async::Task<StagedFiles> bring(const Attempt& attempt);
  /// What the pod has sent to where it belongs: outputs, and the reason of a failure. A failure if
  /// that is not as it should be.
  async::Task<std::optional<Failure>> take(const Attempt& attempt, bool succeeded);
  /// Gives up uploads that nobody will complete. For attempts that are not taken.
  async::Task<> abandon(const Attempt& attempt);
  /// Removes what is the attempt's alone. @param outputs their names
  async::Task<> forget(std::string run_id, std::string step, unsigned number,
                       std::vector<std::string> outputs);

 private:
  struct Sent;
  async::Task<nlohmann::json> item(const Attempt& attempt, std::string to,
                                   std::filesystem::path path, std::string digest);
  async::Task<nlohmann::json> upload(const Attempt& attempt, const AttemptOutput& output,
                                     std::string path);
  async::Task<> receive(const Attempt& attempt, const AttemptOutput& output, const Sent& sent);
  async::Task<std::string> tree_digest_of(const std::filesystem::path& folder);

  s3::Artifacts& artifacts_;
  s3::Bucket& bucket_;
  std::map<std::string, std::map<std::string, std::string>>
      uploads_;             ///< Ids by attempt and key: begun, and not completed.
  asio::thread_pool pool_;  ///< For what is hashed.
};

}  // namespace pipeline::orchestrators
