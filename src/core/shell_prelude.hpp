/// @file
/// Commands that `pipe` puts before the shell text of a step, so that its shell names the line that
/// fails. This header includes only the standard library, because the agent, the program that
/// starts a step's command in its pod, uses it too.
#pragma once

#include <string_view>

namespace pipeline::core {

/// Makes bash name the line at which it ends the step. This text has no line end, so that the line
/// numbers stay right. For a pipe, bash names the last command; the exit codes of all parts say
/// which part has failed.
inline constexpr std::string_view bash_prelude =
    "set -E; trap 'pipe_code=$? pipe_parts=${PIPESTATUS[*]}; case $- in *e*) case $pipe_parts in "
    "*\" \"*) pipe_parts=\" (parts of the pipe: $pipe_parts)\" ;; *) pipe_parts= ;; esac; "
    "echo \"pipe: line $LINENO ended with exit code $pipe_code$pipe_parts: "
    "${BASH_COMMAND%%[[:cntrl:]]*}\" >&2 ;; esac' ERR; ";

/// Makes a sh without the ERR trap of bash name the line, such as that of busybox, which counts
/// lines from 0. A sh that does not count lines, such as Debian's, prints nothing.
inline constexpr std::string_view sh_prelude =
    "pipe_line=$LINENO; [ -z \"$pipe_line\" ] || trap 'pipe_code=$?; [ $pipe_code = 0 ] || "
    "echo \"pipe: line $((LINENO - pipe_line + 1)) ended with exit code $pipe_code\" >&2' EXIT; ";

}  // namespace pipeline::core
