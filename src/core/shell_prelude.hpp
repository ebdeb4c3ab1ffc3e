/// @file
/// Texts before a step's text, by which its shell names the line that fails. A header of its own,
/// without includes but the standard library's, since the agent in a pod reads it too.
#pragma once

#include <string_view>

namespace pipeline::core {

/// Names the line at which bash ends the step, and is on the first line itself. Of a pipe bash
/// names the last command, so its exit codes say which part has failed.
inline constexpr std::string_view shell_prelude =
    "set -E; trap 'pipe_code=$? pipe_parts=${PIPESTATUS[*]}; case $- in *e*) case $pipe_parts in "
    "*\" \"*) pipe_parts=\" (parts of the pipe: $pipe_parts)\" ;; *) pipe_parts= ;; esac; "
    "echo \"pipe: line $LINENO ended with exit code $pipe_code$pipe_parts: "
    "${BASH_COMMAND%%[[:cntrl:]]*}\" >&2 ;; esac' ERR; ";

/// The same for a sh without traps of bash, such as busybox, which counts the lines of a text from
/// 0. A sh that counts no lines, such as Debian's, says nothing.
inline constexpr std::string_view sh_prelude =
    "pipe_line=$LINENO; [ -z \"$pipe_line\" ] || trap 'pipe_code=$?; [ $pipe_code = 0 ] || "
    "echo \"pipe: line $((LINENO - pipe_line + 1)) ended with exit code $pipe_code\" >&2' EXIT; ";

}  // namespace pipeline::core
