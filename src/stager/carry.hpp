/// @file
/// What a pod that shares no files with the driver does for its step: brings the inputs, and takes
/// the outputs away. What to carry where is told by documents that the driver has written
/// (orchestrators/kubernetes/bucket_files.hpp), with URLs that carry their own permission: a pod
/// has no keys.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "stager/transfer.hpp"

namespace pipeline::stager {

/// `{"items": [{"to": PATH, "kind": "file", "url", "digest", "executable"}, {"kind": "tree", ...},
/// {"kind": "text", "text"}]}` What has come is what its digest says. Throws TransferError,
/// EnvironmentError.
void fetch(const nlohmann::json& document, Transfer& transfer);

/// `{"report": URL, "failure": PATH, "outputs": [{"name", "path", "key", "whole": URL, "upload",
/// "before", "after", "signatures"}]}` The report says of each output what it is, and which parts
/// of it the server has, which the driver makes an object; what is small is one already. It is the
/// last thing that is sent.
/// @param exit_code the step's; a step that failed has no outputs
void collect(const nlohmann::json& document, int exit_code, Transfer& transfer);

}  // namespace pipeline::stager
