/// @file
/// Exchanges files through the remote store with pods that see no files of this machine. Pods get
/// URLs in place of credentials, each valid for one blob and for at most 7 days, so nothing in the
/// cluster gives a step further access. Artifacts are stored by digest, as on this machine, and
/// uploaded once.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "blobs/remote_artifacts.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Returns the names of the inputs that pods fetch from addresses.
std::vector<std::string> addresses_of(const Attempt& attempt);

/// Returns the digest of the input that the pod's stager has found damaged or missing in the remote
/// store; empty if there is none.
std::string damaged_input_of(const nlohmann::json& pod);

class PodStaging {
 public:
  /// @param artifacts of a store with PodAccess; outlives this object
  explicit PodStaging(blobs::RemoteArtifacts& artifacts)
      : artifacts_(artifacts), store_(artifacts.store()), pods_(*store_.pod_access()), pool_(1) {}

  /// Throws EnvironmentError with advice unless blobs can be written, read and removed.
  async::Task<> probe() { return artifacts_.probe(); }

  /// Uploads inputs that the store lacks, and returns the documents for the pod's stager.
  async::Task<StagedFiles> stage_in(const Attempt& attempt);
  /// Waits for the list of content that the pod's stager cannot fetch from its address, and uploads
  /// that. `enough` is stopped once the pod has all inputs. Throws EnvironmentError.
  async::Task<> upload_wanted(const Attempt& attempt, core::CancelSource& enough);
  /// Answers the pod's question about outputs that it is about to upload, once the step has ended.
  /// Throws nothing: a pod without an answer uploads them to keys of the attempt.
  async::Task<> answer(const Attempt& attempt, core::CancelSource& enough);
  /// Downloads the pod's outputs, and the reason of a failure; outputs that may stay are noted in
  /// the result instead. Returns a failure if the outputs of a successful attempt are incomplete or
  /// invalid.
  async::Task<std::optional<Failure>> stage_out(const Attempt& attempt, AttemptResult& result);
  /// Records that the store's content of an input does not have its digest, so that the next
  /// attempt uploads it again. Throws LostInput if this machine does not have the content.
  /// @param digest empty: nothing is damaged
  void see_damage(const Attempt& attempt, const std::string& digest);
  /// Aborts uploads that will not be completed, for attempts without stage_out().
  async::Task<> abandon(const Attempt& attempt);
  /// Removes the blobs that belong to this attempt alone.
  /// @param outputs   names of its outputs
  /// @param addresses names of its inputs with AttemptInput::remote
  async::Task<> forget(std::string run_id, std::string step, unsigned number,
                       std::vector<std::string> outputs, std::vector<std::string> addresses);
  /// Removes the blobs of all attempts of a run that has no driver. If the store does not list or
  /// remove them, only logs that, because the next cleaning of the store removes them.
  async::Task<> forget_run(std::string run_id);
  /// Removes the checkpoint of a step that has succeeded.
  async::Task<> forget_checkpoint(std::string key);

  struct Sent;  ///< See sent_output.hpp.

 private:
  async::Task<> shorten(const Attempt& attempt, nlohmann::json& document, std::string list);
  async::Task<nlohmann::json> item(const Attempt& attempt, std::string to,
                                   std::filesystem::path path, std::string digest);
  async::Task<std::string> stored_key(std::string digest, bool is_tree);
  async::Task<nlohmann::json> stored_item(std::string to, std::string digest,
                                          model::Elsewhere place);
  async::Task<nlohmann::json> address_item(const Attempt& attempt, std::string to,
                                           const AttemptInput& input);
  async::Task<> send_pieces(const Attempt& attempt, const AttemptInput& input);
  async::Task<std::string> put_document(const Attempt& attempt, blobs::Body body, std::string key);
  async::Task<nlohmann::json> pieces_item(const Attempt& attempt, std::string to,
                                          const AttemptInput& input);
  async::Task<nlohmann::json> index_item(const Attempt& attempt, const std::string& to,
                                         const AttemptInput& input);
  async::Task<nlohmann::json> source(const Attempt& attempt, const AttemptInput& input,
                                     const std::string& key);
  async::Task<> upload_address(const AttemptInput& input, core::CancelSource& stop);
  async::Task<nlohmann::json> upload(const Attempt& attempt, const AttemptOutput& output,
                                     std::string path);
  async::Task<> download(const Attempt& attempt, const AttemptOutput& output, const Sent& sent,
                         core::CancelSource& cancel);
  bool may_ask(const Attempt& attempt) const;
  async::Task<nlohmann::json> invite_question(const Attempt& attempt);
  async::Task<nlohmann::json> offer(const AttemptOutput& output, const Sent& asked);
  async::Task<> write_answers(const Attempt& attempt, nlohmann::json answers);
  async::Task<nlohmann::json> given_answers(std::string folder);
  void note_documents(const std::string& folder);
  async::Task<nlohmann::json> answers_to(const Attempt& attempt, const nlohmann::json& report);
  async::Task<> finish_direct(const Attempt& attempt, Sent& sent, nlohmann::json& answers);
  async::Task<> abort_unused(std::string folder);
  async::Task<> abort_uploads(std::map<std::string, std::string> uploads);
  async::Task<> finish_upload(const Sent& sent);
  async::Task<bool> leave(const AttemptOutput& output, const Sent& sent, AttemptResult& result);
  async::Task<> receive(const Attempt& attempt, const AttemptOutput& output, const Sent& sent);
  async::Task<> receive_failed(const Attempt& attempt, const AttemptOutput& output,
                               const Sent& sent);
  async::Task<std::string> tree_digest_of(const std::filesystem::path& folder);

  blobs::RemoteArtifacts& artifacts_;
  blobs::BlobStore& store_;
  blobs::PodAccess& pods_;
  /// Ids of uploads that were begun and not completed, by attempt and key.
  std::map<std::string, std::map<std::string, std::string>> uploads_;
  std::set<std::string> unreached_;  ///< Servers that a pod could not reach.
  /// Keys of further blobs of attempts: lists that do not fit into a Secret, questions and answers.
  std::set<std::string> documents_;
  std::set<std::string> kept_;  ///< Keys of artifacts that a pod has to upload.
  asio::thread_pool pool_;      ///< Computes digests.
};

}  // namespace pipeline::orchestrators::kubernetes
