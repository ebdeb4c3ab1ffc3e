#include <pipeline/events.hpp>

namespace pipeline {

std::string_view to_string(StepStatus status) {
  switch (status) {
    case StepStatus::pending: return "pending";
    case StepStatus::running: return "running";
    case StepStatus::succeeded: return "succeeded";
    case StepStatus::cached: return "cached";
    case StepStatus::failed: return "failed";
    case StepStatus::skipped: return "skipped";
    case StepStatus::cancelled: return "cancelled";
  }
  return "unknown";
}

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::running: return "running";
    case RunStatus::succeeded: return "succeeded";
    case RunStatus::failed: return "failed";
    case RunStatus::interrupted: return "interrupted";
  }
  return "unknown";
}

std::string_view to_string(FailureKind kind) {
  switch (kind) {
    case FailureKind::exit_code: return "exit_code";
    case FailureKind::exception: return "exception";
    case FailureKind::signal: return "signal";
    case FailureKind::out_of_memory: return "out_of_memory";
    case FailureKind::timed_out: return "timed_out";
    case FailureKind::stalled: return "stalled";
    case FailureKind::missing_output: return "missing_output";
    case FailureKind::bad_output: return "bad_output";
    case FailureKind::not_started: return "not_started";
    case FailureKind::cancelled: return "cancelled";
    case FailureKind::environment: return "environment";
    case FailureKind::build: return "build";
    case FailureKind::infrastructure: return "infrastructure";
  }
  return "unknown";
}

}  // namespace pipeline
