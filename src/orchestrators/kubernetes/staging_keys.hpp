/// @file
/// Keys of the blobs in the remote store that belong to one attempt alone.
#pragma once

#include <string>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

inline std::string folder_of_run(const std::string& run_id) { return "runs/" + run_id + "/"; }
inline std::string folder_of(const std::string& run_id, const std::string& step, unsigned number) {
  return folder_of_run(run_id) + step + "." + std::to_string(number) + "/";
}
inline std::string folder_of(const AttemptSpec& attempt) {
  return folder_of(attempt.run_id, attempt.step.name, attempt.number);
}
inline std::string report_key(const std::string& folder) { return folder + "report.json"; }
inline std::string output_key(const std::string& folder, const std::string& name) {
  return folder + "outputs/" + name;
}
/// Key of the list of files of an input that is a folder at an address.
inline std::string list_key(const std::string& folder, const std::string& input) {
  return folder + "inputs/" + input + ".json";
}
/// Key of a list that is too long for the pod's Secret: `items` or `outputs`.
inline std::string document_key(const std::string& folder, const std::string& list) {
  return folder + list + ".json";
}
/// Key of the list of an input's pieces that is too long as well.
inline std::string pieces_key(const std::string& folder, const std::string& input) {
  return folder + "pieces/" + input;
}
/// Key of the index of a gathered input that is too long as well.
inline std::string index_key(const std::string& folder, const std::string& input) {
  return folder + "index/" + input;
}
/// Key of the pod's list of content that it cannot fetch from addresses.
inline std::string wanted_key(const std::string& folder) { return folder + "wanted.json"; }
/// Key of the pod's question about outputs that it has not sent yet. Only the pod writes it.
inline std::string question_key(const std::string& folder) { return folder + "question.json"; }
/// Key of the answer, which also records which of the allowed uploads the driver has completed.
/// Only drivers write it.
inline std::string answer_key(const std::string& folder) { return folder + "answer.json"; }

}  // namespace pipeline::orchestrators::kubernetes
