#include <algorithm>
#include <cctype>

#include "core/digest.hpp"
#include "core/joined.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/nodes.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

bool is_alphanumeric(char c) {
  return static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c));
}

}  // namespace

/// A label's value has at most 63 letters, digits, `-`, `_` and `.`; the first and the last are a
/// letter or a digit. An invalid text is converted, with a digest to keep it unique.
std::string label_value(const std::string& text) {
  constexpr std::size_t max_length = 63, digest_length = 10;
  const auto is_fit = [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  const bool ends_well =
      text.empty() || (is_alphanumeric(text.front()) && is_alphanumeric(text.back()));
  if (text.size() <= max_length && ends_well && std::all_of(text.begin(), text.end(), is_fit))
    return text;
  std::string value;
  for (const char c : text.substr(0, max_length - digest_length - 2)) value += is_fit(c) ? c : '-';
  return (is_alphanumeric(value.front()) ? "" : "x") + value + "-" +
         core::sha256(text).hex().substr(0, digest_length);
}

std::string job_name(const std::string& run_id, const std::string& step_name, unsigned number,
                     const std::string& node) {
  // 63 for the pod's name, less pipe's prefix, the digest and the Job controller's suffix.
  constexpr std::size_t max_length = 30;
  std::string step;
  for (const char c : step_name.substr(0, max_length))
    step += is_alphanumeric(c) ? static_cast<char>(std::tolower(c)) : '-';
  core::Hasher hasher;
  hasher.field(run_id).field(step_name).field(std::to_string(number));
  if (!node.empty()) hasher.field(node);
  return "pipe-" + step + "-" + hasher.finish().hex().substr(0, 16);
}

std::string job_name(const AttemptSpec& attempt) {
  const auto& process = attempt.process;
  const auto node =
      !process ? std::string()
               : (process->addresses->nodes_share_description ? "all" : node_text(*process)) + "." +
                     std::to_string(process->addresses->tries);
  return job_name(attempt.shell ? attempt.shell->id : attempt.run_id, attempt.step.name,
                  attempt.number, node);
}

StringMap attempt_labels(const std::string& run_id, const std::string& step, unsigned number,
                         const std::string& owner) {
  return {{"pipe.run", label_value(run_id)},
          {"pipe.step", label_value(step)},
          {"pipe.attempt", std::to_string(number)},
          {"pipe.state", owner}};
}

StringMap job_labels(const AttemptSpec& attempt, const std::string& owner) {
  // The labels of a run are left out; otherwise remove_orphans() would delete this Job.
  if (attempt.shell)
    return {{"app.kubernetes.io/managed-by", "pipe"},
            {"pipe.shell", label_value(attempt.shell->id)},
            {"pipe.step", label_value(attempt.step.name)},
            {"pipe.pipeline", label_value(attempt.pipeline)}};
  auto labels = attempt_labels(attempt.run_id, attempt.step.name, attempt.number, owner);
  labels["app.kubernetes.io/managed-by"] = "pipe";
  labels["pipe.pipeline"] = label_value(attempt.pipeline);
  if (attempt.process) {
    if (!attempt.process->addresses->nodes_share_description)
      labels[node_label] = node_text(*attempt.process);
    labels[try_label] = std::to_string(attempt.process->addresses->tries);
  }
  return labels;
}

std::string label_selector(const StringMap& labels) {
  return core::joined(labels, ",",
                      [](const auto& label) { return label.first + "=" + label.second; });
}

std::string run_selector(const std::string& run_id, const std::string& owner) {
  return "pipe.run=" + label_value(run_id) + ",pipe.state=" + owner;
}

std::string shell_selector(const std::string& id) { return "pipe.shell=" + label_value(id); }

}  // namespace pipeline::orchestrators::kubernetes
