// The first process of a step's container on a cluster. It starts the step's command, forwards
// signals, reaps orphaned processes, and writes both output streams as frames to the single stream
// that a cluster keeps, so that they can be separated again (agent/frames.hpp). Linked
// statically, so that it runs in any image.
//
// Usage: pipe-agent install FILE
//          copies itself to FILE, for the containers that start later
//        pipe-agent init PROGRAM [ARGUMENT...]
//          runs a step's command in a container of an engine (init.hpp)
//        pipe-agent join RANK PROGRAM [ARGUMENT...] | join NAME=VALUE... -- PROGRAM [ARGUMENT...]
//          runs a user's command beside a process of a step (join.hpp)
//        pipe-agent ranks [OPTION...] PROGRAM [ARGUMENT...]
//          starts the processes of a node of a step with nodes (ranks.hpp)
//        pipe-agent job JOBS EVENTS NAME | job JOBS EVENTS --list FILE
//          begins a job of Slurm (job.hpp)
//        pipe-agent ready PORT [PATH]
//          checks whether a service accepts connections (ready.hpp)
//        pipe-agent probe FILE port PORT [PATH] | probe FILE run PROGRAM [ARGUMENT...]
//        pipe-agent needed FOLDER
//          tell a cluster whether a service is ready, and whether it is still needed (services.hpp)
//        pipe-agent shell --terminal|--pipes PROGRAM [ARGUMENT...]
//          runs a user's shell (shell.hpp)
//        pipe-agent [OPTION...] STOP_FILE PROGRAM [ARGUMENT...]
//          --log FILE                  also writes all frames to the file: nodes shorten logs
//          --gpus                      samples the pod's GPUs
//          --stalled-after MS          reports waits of processes after MS without output
//          --progress                  reports no waits of a step that computes, reads or writes
//          --status FILE               writes the step's end to the file, on a file system that the
//                                      driver shares, and ends what the step has left running;
//                                      kills it if STOP_FILE's folder is removed (job_folder.hpp)
//          --services FOLDER COUNT     waits for services, and tells them the end (services.hpp)
//          --collect STAGER DOCUMENT   runs the stager at the step's end to upload the outputs
//                                      (stager/main.cpp)
//          --checkpoint                runs the stager to upload the checkpoint, beside the step
//                                      and once it has failed or was stopped
//
// A cluster sends SIGTERM, and SIGKILL only much later. The agent forwards SIGTERM to all processes
// of the step, and waits until they have ended. If STOP_FILE exists, SIGTERM is treated as SIGKILL.
// All agents of a job of Slurm get SIGURG at once; the agent whose STOP_FILE.soon exists treats
// SIGURG as SIGTERM. In a pod with a checkpoint, the agent itself kills a step that has not ended
// some seconds after SIGTERM, so that time is left for the upload.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/init.hpp"
#include "agent/install.hpp"
#include "agent/job.hpp"
#include "agent/job_folder.hpp"
#include "agent/join.hpp"
#include "agent/ranks.hpp"
#include "agent/ready.hpp"
#include "agent/services.hpp"
#include "agent/shell.hpp"
#include "agent/silence.hpp"
#include "agent/termination_message.hpp"
#include "agent/usage.hpp"
#include "agent/waits.hpp"

namespace {

using namespace pipeline::agent;

// Docker and containerd cut lines at 16 KiB; a frame stays well below.
constexpr std::size_t max_frame = 8000;
constexpr int stop_seconds = 10;  // How long a step with a checkpoint may run after SIGTERM.

bool write_all(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t count = write(file, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

int kept_log = -1;               // File of --log.
unsigned long long written = 0;  // Bytes of all frames so far.

/// Writes a frame (frames.hpp) to the container's log and to the file of --log.
void write_frame(char kind, const char* text, std::size_t size) {
  char frame[max_frame + 64];
  std::size_t length = static_cast<std::size_t>(
      kind == '.' ? snprintf(frame, 48, ".%llu", written)
                  : snprintf(frame, 48, "%c%llu %zu ", kind, written, size));
  memcpy(frame + length, text, size);
  length += size;
  frame[length++] = '\n';
  written += length;
  if (kept_log >= 0 && !write_all(kept_log, frame, length)) {  // The disk may be full.
    close(kept_log);
    kept_log = -1;
  }
  // A failure is ignored: the step continues even if the stream's reader is gone.
  write_all(STDOUT_FILENO, frame, length);
}

void write_end() {
  // Other machines that share the file system see the whole file once it is closed.
  if (kept_log >= 0) close(kept_log);
  kept_log = -1;
  write_frame('.', "", 0);
}

/// Forwards available bytes as frames. Returns false at the stream's end.
/// @param whole, part kinds of the frames of lines, and of parts without a line end
bool pass_on(int from, char whole, char part) {
  char bytes[max_frame];
  const ssize_t count = read(from, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  const char* begin = bytes;
  for (const char* end = bytes + count; begin < end;) {
    const auto* line_end =
        static_cast<const char*>(memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
    write_frame(line_end ? whole : part, begin,
                static_cast<std::size_t>((line_end ? line_end : end) - begin));
    begin = line_end ? line_end + 1 : end;
  }
  return count > 0;
}

/// Writes the end of a step as a JSON object. Other machines see the whole file or none, also after
/// a power failure.
/// @param end, usage a text of members of the object, and the text from UsageMeter::write()
void write_status(const char* path, const char* end, const char* usage) {
  fsync(STDOUT_FILENO);  // Other machines see all of the log before they see its end.
  char text[max_usage + 128], fresh[4096], folder[4096];
  const int size = snprintf(text, sizeof text, "{%s,\"usage\":%s}\n", end, usage);
  snprintf(fresh, sizeof fresh, "%s.new", path);
  snprintf(folder, sizeof folder, "%s", path);
  if (char* slash = strrchr(folder, '/')) *slash = '\0';
  const int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool good = file >= 0 && size > 0 &&
                    write_all(file, text, static_cast<std::size_t>(size)) && fsync(file) == 0 &&
                    close(file) == 0 && rename(fresh, path) == 0;
  if (!good) fprintf(stderr, "pipe-agent: cannot write %s: %s\n", path, strerror(errno));
  const int parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent >= 0) {
    fsync(parent);
    close(parent);
  }
}

/// Reports that the command cannot be executed, and ends the log. Returns the exit code.
int report_not_executed(int error, const char* status_file) {
  if (status_file) {
    char end[32];
    snprintf(end, sizeof end, "\"not_executed\":%d", error);
    write_end();
    write_status(status_file, end, "{}");
    return error == ENOENT ? 127 : 126;
  }
  const int code = write_not_executed(error);
  write_end();
  return code;
}

/// Executes the command in this process. On failure, writes errno to the pipe `failure`.
[[noreturn]] void become(char** command, int out, int err, int failure, const sigset_t& mask) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(command[0], command);
  const int error = errno;
  write_all(failure, reinterpret_cast<const char*>(&error), sizeof error);
  _exit(127);
}

struct Options {
  const char* stop_file = nullptr;
  const char *stager = nullptr, *document = nullptr;
  const char* services = nullptr;  ///< Folder of the services; null: there are none.
  int service_count = 0;
  const char* status = nullptr;  ///< File for the step's end; null: the pod's status has it.
  bool has_gpus = false, has_checkpoint = false;
  long stalled_after = 0;        ///< Milliseconds; 0: the step may be silent.
  bool counts_progress = false;  ///< A step that makes progress may be silent.
};

/// Starts the stager, and returns its process. The stager prints the reason of a failure.
/// @param task `keep`, `save` or `collect` (stager/main.cpp)
/// @param code exit code of the step, for `collect`; otherwise null
/// @param err  file that receives the messages of the stager; -1: they are dropped
pid_t start_stager(const Options& options, const char* task, const char* code, int err) {
  const pid_t child = fork();
  if (child != 0) return child;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null_device = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null_device, STDOUT_FILENO);
  dup2(err >= 0 ? err : null_device, STDERR_FILENO);
  execl(options.stager, options.stager, task, options.document, code, static_cast<char*>(nullptr));
  _exit(127);
}

enum class Upload { checkpoint, outputs };

/// Waits for the stager. SIGTERM kills a stager that uploads outputs.
/// @return true if the stager has succeeded
bool wait_for(pid_t stager, int signals, Upload upload) {
  const bool is_stoppable = upload == Upload::outputs;
  if (stager < 0) return false;
  for (;;) {
    pollfd news{signals, POLLIN, 0};
    poll(&news, 1, -1);
    signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGTERM && is_stoppable) kill(stager, SIGKILL);
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == stager) {
        if (is_stoppable && WIFSIGNALED(status)) write_stager_killed(WTERMSIG(status));
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
      }
  }
}

/// A step in progress.
struct Step {
  pid_t pid;
  pollfd out, err;
  int signals;               ///< Descriptor that this agent's signals are read from.
  const char* stop_file;     ///< Created by the driver to have the step killed at once.
  pid_t checkpoint_stager;   ///< The stager that uploads checkpoints meanwhile; -1: none.
  int status = 0;            ///< The command's status from waitpid(2).
  bool is_stopping = false;  ///< SIGTERM has arrived.
  bool is_given_up = false;  ///< The driver has removed the attempt's folder (job_folder.hpp).
  time_t kill_at = 0;        ///< When a stopping step is killed, as now() returns it; 0: never.
};

/// Reaps the children that have ended. Returns the step's process if it has ended, else 0, or -1 if
/// there are no children.
pid_t reap(Step& step, UsageMeter& meter, const GpuWatch& gpus) {
  pid_t child = 0, found = 0;
  rusage used{};
  for (int status = 0; (child = wait4(-1, &status, WNOHANG, &used)) > 0;) {
    if (child != gpus.process() && child != step.checkpoint_stager) meter.add(used);
    if (child == step.pid) {
      step.status = status;
      found = child;
    }
  }
  return found ? found : child;
}

/// Returns the signal, but SIGTERM for the first SIGURG that is meant for this agent. Slurm sends
/// SIGURG to all agents of a job; the driver marks the one that is to stop by a file.
int meaning_of(unsigned signal, const Step& step) {
  char file[4096];
  snprintf(file, sizeof file, "%s.soon", step.stop_file);
  const bool is_stop = signal == SIGURG && !step.is_stopping && access(file, F_OK) == 0;
  return is_stop ? SIGTERM : static_cast<int>(signal);
}

/// Returns the seconds of the monotonic clock.
time_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

/// Forwards output and signals until the step has ended.
void watch(Step& step, UsageMeter& meter, GpuWatch& gpus, Silence silence, JobFolder folder) {
  for (bool ended = false, is_over = false; !is_over;) {
    constexpr int stop_file_pause = 100;  // Milliseconds between two looks for the stop file.
    const int pause = folder.limited_pause(silence.limited_pause(meter.sample()));
    pollfd watched[] = {step.out, step.err, {step.signals, POLLIN, 0}, {gpus.file(), POLLIN, 0}};
    if (poll(watched, 4, step.is_stopping ? stop_file_pause : pause) < 0 && errno != EINTR) break;
    if (watched[0].revents && !pass_on(step.out.fd, 'o', 'O')) step.out.fd = -1;
    if (watched[1].revents && !pass_on(step.err.fd, 'e', 'E')) step.err.fd = -1;
    if (watched[3].revents) gpus.read();
    if (watched[0].revents || watched[1].revents) silence.restart();
    const std::initializer_list<pid_t> left_out{gpus.process(), step.checkpoint_stager};
    if (const auto age = silence.look_for_progress(left_out)) {
      char text[24];
      const int size = snprintf(text, sizeof text, "%ld", *age);
      write_frame('a', text, static_cast<std::size_t>(size));
    }
    if (silence.is_over_limit()) {
      char waits[max_waits];
      write_frame('w', waits, write_waits(waits, left_out));
    }
    signalfd_siginfo info;
    bool at_once = step.is_stopping && access(step.stop_file, F_OK) == 0;
    while (read(step.signals, &info, sizeof info) == sizeof info) {
      const int signal = meaning_of(info.ssi_signo, step);
      step.is_stopping |= signal == SIGTERM;
      at_once |= step.is_stopping && access(step.stop_file, F_OK) == 0;
      if (signal == SIGCHLD || signal == SIGURG || at_once) continue;
      if (signal == SIGTERM)
        signal_descendants(SIGTERM, left_out);
      else if (!ended)
        kill(step.pid, signal);
    }
    if (step.is_stopping && step.checkpoint_stager > 0) {
      if (step.kill_at == 0) step.kill_at = now() + stop_seconds;
      at_once |= now() >= step.kill_at;
    }
    step.is_given_up |= folder.is_removed();
    at_once |= step.is_given_up;
    if (at_once && !ended) kill(step.pid, SIGKILL);
    ended |= reap(step, meter, gpus) == step.pid;
    const bool has_time = step.is_stopping && !at_once;
    is_over = ended && !(has_time && signal_descendants(0, left_out) > 0);
  }
}

/// Waits for the processes that the step had left running and that were killed, so that their usage
/// counts. Waits one second at most, because a process can hang in a device.
void reap_rest(Step& step, UsageMeter& meter, const GpuWatch& gpus) {
  constexpr int max_looks = 100;
  for (int look = 0; look < max_looks && reap(step, meter, gpus) >= 0; ++look) usleep(10'000);
}

/// Kills the processes that the step has left running, which are children of this process now.
void end_rest(Step& step, UsageMeter& meter, const GpuWatch& gpus) {
  constexpr int max_looks = 100;
  for (int look = 0; look < max_looks; ++look) {
    if (signal_descendants(SIGKILL, {gpus.process()}) == 0) break;
    usleep(2'000);
    reap(step, meter, gpus);
  }
}

/// Forwards the rest of the pipes, which a process outside of the container may still hold open.
void drain(Step& step) {
  for (const int end : {step.out.fd, step.err.fd}) fcntl(end, F_SETFL, O_NONBLOCK);
  for (bool has_more = true; has_more;) {
    has_more = false;
    for (auto* pipe : {&step.out, &step.err}) {
      pollfd now{pipe->fd, POLLIN, 0};
      if (pipe->fd < 0 || poll(&now, 1, 0) <= 0) continue;
      const bool is_out = pipe == &step.out;
      if (pass_on(pipe->fd, is_out ? 'o' : 'e', is_out ? 'O' : 'E'))
        has_more = true;
      else
        pipe->fd = -1;
    }
  }
}

/// Blocks the signals that the agent handles. @param before receives the signals blocked until then
/// @return a descriptor to read them from; -1 on failure
int open_signals(sigset_t& before) {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGURG})
    sigaddset(&caught, signal);
  sigprocmask(SIG_BLOCK, &caught, &before);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Ends the processes that the step has left running. In a container whose first process is not
/// this agent, ends only the stager: the rest ends with the container.
void end_left(Step& step, const Options& options, UsageMeter& meter, const GpuWatch& gpus) {
  if (getpid() == 1)
    kill(-1, SIGKILL);
  else if (options.status)
    end_rest(step, meter, gpus);
  else if (step.checkpoint_stager > 0)
    kill(step.checkpoint_stager, SIGKILL);
}

/// Writes the step's end to the status file. @param usage as UsageMeter::write() returns it
void report_end(const Step& step, const char* status_file, const char* usage) {
  const bool is_signal = WIFSIGNALED(step.status);
  char end[64];
  snprintf(end, sizeof end, "\"%s\":%d%s", is_signal ? "signal" : "code",
           is_signal ? WTERMSIG(step.status) : WEXITSTATUS(step.status),
           step.is_stopping ? ",\"stopped\":true" : "");
  write_status(status_file, end, usage);
}

/// Runs the command. @return the command's exit code; 128 plus the number of the signal that ended
/// it, or of SIGTERM if that has come before the services were ready; 126 or 127 if the command
/// cannot be executed; 125 if it cannot be started, or if the stager cannot upload the outputs
int run(char** command, const Options& options) {
  int out[2], err[2], failure[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0)
    return 125;
  sigset_t before;
  const int signals = open_signals(before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (options.services && !wait_for_services(options.services, options.service_count, signals)) {
    write_end();
    return 128 + SIGTERM;
  }
  if (options.services) write_frame('w', "", 0);
  const pid_t pid = fork();
  if (signals < 0 || pid < 0) return 125;
  if (pid == 0) {
    signal(SIGPIPE, SIG_DFL);
    become(command, out[1], err[1], failure[1], before);
  }
  raise(SIGURG);  // Lets watch() look for the file of a stop that came before this agent started.
  for (const int end : {out[1], failure[1]}) close(end);
  if (!options.has_checkpoint) close(err[1]);
  int error = 0;
  if (read(failure[0], &error, sizeof error) == sizeof error)
    return report_not_executed(error, options.status);

  Step step{pid, {out[0], POLLIN, 0}, {err[0], POLLIN, 0}, signals, options.stop_file, -1};
  if (options.has_checkpoint)
    step.checkpoint_stager = start_stager(options, "keep", nullptr, err[1]);
  const bool is_first = getpid() == 1;
  UsageMeter meter(is_first);
  GpuWatch gpus;
  if (options.has_gpus) gpus.start(before);
  watch(step, meter, gpus, Silence(options.stalled_after, options.counts_progress),
        JobFolder(options.status ? options.stop_file : nullptr));
  end_left(step, options, meter, gpus);
  gpus.stop();
  drain(step);
  if (is_first) reap_rest(step, meter, gpus);
  char used[max_usage];
  const auto used_size = meter.write(used, gpus);
  write_frame('u', used, used_size);
  const int code =
      WIFSIGNALED(step.status) ? 128 + WTERMSIG(step.status) : WEXITSTATUS(step.status);
  char text[16];
  snprintf(text, sizeof text, "%d", code);
  // The driver takes the end of the log as the end of a stopped step's pod: the uploads come first.
  if (options.has_checkpoint && (step.is_stopping || code != 0))
    wait_for(start_stager(options, "save", nullptr, err[1]), signals, Upload::checkpoint);
  if (options.stager && step.is_stopping)
    wait_for(start_stager(options, "collect", text, -1), signals, Upload::outputs);
  drain(step);
  write_end();
  if (options.status && !step.is_given_up) {  // The folder of a given-up attempt is removed.
    used[used_size < sizeof used ? used_size : sizeof used - 1] = '\0';
    report_end(step, options.status, used);
  }
  if (!options.stager || step.is_stopping) return code;
  const pid_t collector = start_stager(options, "collect", text, -1);
  return wait_for(collector, signals, Upload::outputs) ? code : 125;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 125;
  const auto is = [&arguments](const char* word) { return strcmp(arguments[1], word) == 0; };
  if (is("install")) return install(arguments[2]);
  if (is("init")) return run_init(arguments + 2);
  if (is("join") && count > 3) return run_join(arguments + 2);
  if (is("ranks")) return run_ranks(arguments + 2);
  if (is("job")) return begin_job(arguments + 2, count - 2);
  if (is("ready")) return look_if_ready(arguments[2], count > 3 ? arguments[3] : nullptr);
  if (is("probe") && count > 4) return probe_service(arguments[2], arguments + 3);
  if (is("needed")) return look_if_needed(arguments[2]);
  if (is("shell") && count > 3)
    return run_shell(strcmp(arguments[2], "--terminal") == 0, arguments + 3);
  Options options;
  for (; strncmp(arguments[1], "--", 2) == 0; ++arguments, --count) {
    const bool is_flag = is("--gpus") || is("--checkpoint") || is("--progress");
    const int values = is("--collect") || is("--services") ? 2 : is_flag ? 0 : 1;
    if (count < values + 4) return 125;
    options.has_gpus |= is("--gpus");
    options.has_checkpoint |= is("--checkpoint");
    options.counts_progress |= is("--progress");
    if (is("--collect")) {
      options.stager = arguments[2];
      options.document = arguments[3];
    } else if (is("--services")) {
      options.services = arguments[2];
      options.service_count = atoi(arguments[3]);
    } else if (is("--stalled-after")) {
      options.stalled_after = strtol(arguments[2], nullptr, 10);
    } else if (is("--status")) {
      options.status = arguments[2];
    } else if (is("--log")) {
      kept_log = open(arguments[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    } else if (!is_flag) {
      return 125;
    }
    arguments += values;
    count -= values;
  }
  options.stop_file = arguments[1];
  const int code = run(arguments + 2, options);
  if (options.services) end_services(options.services);
  return code;
}
