/// @file
/// Transfers the files of a pod that shares no files with the driver: downloads the step's inputs
/// and uploads its outputs. The driver writes documents that list the transfers
/// (orchestrators/kubernetes/pod_staging.hpp), with signed URLs, so that the pod has no keys.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "stager/node_cache.hpp"
#include "stager/source.hpp"
#include "stager/transfer.hpp"

namespace pipeline::stager {

/// The store has other content under a digest, or none.
class DamagedItem : public TransferError {
 public:
  DamagedItem(const std::string& message, std::string digest)
      : TransferError(message, true), digest_(std::move(digest)) {}
  const std::string& digest() const { return digest_; }

 private:
  std::string digest_;
};

/// Adds the lists that the document names by URLs, `{"lists": {"items": URL}}`: lists that are too
/// long for the document.
void complete(nlohmann::json& document, Transfer& transfer);

/// Downloads the items of the document: `{"items": [{"to": PATH, "kind": "file", "url", "digest",
/// "executable"}, {"kind": "tree", ...}, {"kind": "text", "text"}]}`. Each item is checked against
/// its digest. Throws DamagedItem for content that has another one.
///
/// An item `{"to", "kind": "pieces", "before", "after", "rows": TEXT}` is a folder of many objects,
/// `KIND DIGEST KEY SIGNATURE NAME` in each line, whose URLs are BEFORE KEY AFTER SIGNATURE; the
/// kinds are `file`, `executable` and `tree`. An item with `"list": URL` in place of `rows` has its
/// text at that URL.
///
/// An item with `"source": {"shown", "url", "size", "keep": URL}` comes from a source
/// (SourceReader); for a folder, `{"shown", "files": URL}` names the list of its files. With
/// `keep`, the file is then uploaded, so that others find it at `url`. Items that cannot be read
/// from their source are listed at `{"wanted": URL}` of the document, as `{DIGEST: REASON}`; then
/// the driver has an hour to upload them to `url`. Throws TransferError, EnvironmentError.
/// @param cache the folder in which the node's pods share objects; null if there is none
void fetch(const nlohmann::json& document, Transfer& transfer,
           const SourceReader& sources = SourceReader({}), NodeCache* cache = nullptr);

/// Uploads the outputs of the document: `{"report": URL, "failure": PATH, "outputs": [{"name",
/// "path", "key", "whole": URL, "upload", "before", "after", "signatures", "stays"}]}`. The report
/// describes each output (`digest`: the SHA-256 of what was uploaded; with `stays`, `artifact`: the
/// digest of the folder) and lists its uploaded parts, from which the driver completes the object;
/// a small output is uploaded as an object. With `question` (question.hpp), the report is `asked`,
/// and outputs that the driver's answer concerns are `direct`: their tags are those of the
/// artifact. The report is uploaded last.
/// @param exit_code exit code of the step; for a failed step, outputs that cannot be uploaded are
///        left out
/// @return true if the step has succeeded and written all outputs
bool collect(const nlohmann::json& document, int exit_code, Transfer& transfer);

}  // namespace pipeline::stager
