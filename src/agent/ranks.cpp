#include "agent/ranks.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/meeting.hpp"
#include "agent/waits.hpp"

namespace pipeline::agent {
namespace {

constexpr std::size_t max_rank_line = 16 << 20;  ///< Bytes; a longer line is cut into several.
constexpr int grace_ms = 10'000, look_again_ms = 100, notice_after_ms = 10'000;

struct RankOptions {
  unsigned node = 0, nodes = 1, processes = 1, own_gpus = 0, restarts = 0;
  bool first_is_enough = false;
  bool addresses_are_of_node_0 = false;  ///< Node 0 answers at one of them, and tells the others.
  int begun_within_ms = 300'000;
  long long addresses_within_ms = 0;  ///< Time limit, because the driver may be dead; 0: none.
  std::string addresses, port, id;
  std::vector<std::string> filled;  ///< Names of the variables of --fill.
  char** command = nullptr;
};

unsigned number_of(const char* text) { return static_cast<unsigned>(strtoul(text, nullptr, 10)); }

RankOptions read_options(char** words) {
  RankOptions options;
  for (; *words && strncmp(*words, "--", 2) == 0; ++words) {
    const auto is = [&](const char* name) { return strcmp(*words, name) == 0; };
    if (is("--first")) {
      options.first_is_enough = true;
      continue;
    }
    const bool is_node = is("--node");
    char* value = words[1];
    if (is_node) options.node = number_of(value), value = words[2];
    if (is_node) options.nodes = number_of(value);
    if (is("--processes")) options.processes = number_of(value);
    if (is("--own-gpus")) options.own_gpus = number_of(value);
    if (is("--restarts")) options.restarts = number_of(value);
    if (is("--begun-within")) options.begun_within_ms = static_cast<int>(number_of(value)) * 1000;
    if (is("--addresses")) options.addresses = value;
    if (is("--addresses-within")) options.addresses_within_ms = number_of(value) * 1000LL;
    if (is("--port")) options.port = value;
    if (is("--id")) options.id = value;
    if (is("--fill")) options.filled = split_at_commas(value);
    words += is_node ? 2 : 1;
  }
  options.command = words;
  if (const char* secret = getenv("PIPE_NODE_SECRET")) options.id += std::string("-") + secret;
  unsetenv("PIPE_NODE_SECRET");
  if (const char* meeting = getenv("PIPE_NODE_MEETING"); meeting && options.addresses == "-") {
    options.addresses_are_of_node_0 = true;
    options.addresses = meeting;
  }
  unsetenv("PIPE_NODE_MEETING");
  return options;
}

long long now_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1'000'000;
}

void replace_all(std::string& text, const std::string& mark, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size())
    text.replace(at, mark.size(), by);
}

void write_whole(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
}

/// An output stream of a process, whose lines are passed on with its rank.
struct RankStream {
  int from = -1, to = STDOUT_FILENO;
  std::string rest = {};  ///< The beginning of a line whose end has not arrived.

  /// Passes the available bytes on, each line with the prefix. Returns false at the stream's end.
  bool pass_on(const std::string& prefix) {
    char bytes[65536];
    const ssize_t count = read(from, bytes, sizeof bytes);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    rest.append(bytes, static_cast<std::size_t>(count));
    std::string lines;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines += prefix + rest.substr(begin, end + 1 - begin);
    rest.erase(0, begin);
    if ((count == 0 && !rest.empty()) || rest.size() > max_rank_line) {
      lines += prefix + rest + "\n";
      rest.clear();
    }
    write_whole(to, lines);
    return count > 0;
  }
  void close_source() {
    if (from >= 0) close(from);
    from = -1;
  }
};

struct RankProcess {
  std::string prefix;  ///< `[RANK] `, written before each line of the process.
  pid_t pid = -1;      ///< -1: the process has ended.
  RankStream out, err = {-1, STDERR_FILENO};
};

/// The processes of this node. `local` is the number of a process on its node, from 0.
class RankNode {
 public:
  explicit RankNode(RankOptions options);
  int run();

 private:
  void read_addresses();
  void try_to_meet();
  void give_up_without_addresses();
  void begin();
  pid_t start(unsigned local, int out, int err);
  [[noreturn]] void become(unsigned local);
  std::string filled(std::string value, unsigned local) const;
  std::string own_gpus(const std::vector<std::string>& all, unsigned local) const;
  void wait_for_news();
  void pass_on(bool is_last);
  void reap();
  void handle_end(unsigned local, int code, const rusage& used);
  void obey(Meeting::Command command);
  void end_processes();
  void finish_ending();
  bool is_running() const;
  unsigned rank(unsigned local) const { return options_.node * options_.processes + local; }

  const RankOptions options_;
  Meeting meeting_;
  std::vector<std::string> addresses_;
  std::vector<RankProcess> processes_;
  sigset_t before_{};  ///< The signals that were blocked before run().
  int signals_ = -1, own_errors_ = -1;
  bool reads_addresses_ = false;  ///< The line of addresses has not arrived yet.
  bool is_meeting_ = true;        ///< The processes wait for the next begin.
  bool is_ending_ = false;        ///< The processes have been asked to end.
  bool is_stopped_ = false;       ///< This agent has received SIGTERM.
  bool has_told_ = false;         ///< Node 0 knows that all processes of this node have succeeded.
  std::string addresses_line_;    ///< The part of the line of addresses that has arrived.
  long long began_ms_ = now_ms(), kill_at_ = 0;  ///< Milliseconds of the monotonic clock.
  bool has_noticed_ = false;  ///< The user has been told why the agents do not meet.
  unsigned begun_ = 0;        ///< How often the processes have been started.
  std::optional<int> code_;   ///< The exit code of this node, once it is known.
};

RankNode::RankNode(RankOptions options)
    : options_(std::move(options)), meeting_(options_.node, options_.nodes, options_.id) {
  processes_.resize(options_.processes);
  for (unsigned local = 0; local < options_.processes; ++local)
    processes_[local].prefix = "[" + std::to_string(rank(local)) + "] ";
  reads_addresses_ = options_.addresses == "-";
  if (!reads_addresses_) addresses_ = split_at_commas(options_.addresses);
}

int RankNode::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGCHLD, SIGTERM}) sigaddset(&caught, signal);
  sigprocmask(SIG_BLOCK, &caught, &before_);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
  own_errors_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  while (!code_ || is_running()) {
    if (is_meeting_ && !reads_addresses_ && !meeting_.is_connected()) try_to_meet();
    if (reads_addresses_) give_up_without_addresses();
    for (auto command = meeting_.next(); command != Meeting::Command::none;
         command = meeting_.next())
      obey(command);
    wait_for_news();
    pass_on(false);
    reap();
    if (is_ending_ && kill_at_ > 0 && now_ms() >= kill_at_) signal_descendants(SIGKILL, {});
    if (is_ending_ && !is_running()) finish_ending();
    // If node 0 is lost after this node's success, this node succeeds alone. The driver ends nodes
    // that wait in vain.
    if (has_told_ && !meeting_.is_whole() && options_.node > 0) code_ = 0;
  }
  return *code_;
}

/// Waits for output, signals, addresses or other agents. Handles signals and addresses; run()
/// handles the rest.
void RankNode::wait_for_news() {
  std::vector<pollfd> files{{signals_, POLLIN, 0}};
  if (reads_addresses_) files.push_back({STDIN_FILENO, POLLIN, 0});
  meeting_.watch(files);
  for (const auto& process : processes_)
    for (const auto* stream : {&process.out, &process.err})
      if (stream->from >= 0) files.push_back({stream->from, POLLIN, 0});
  const bool looks_again = is_ending_ || (is_meeting_ && !meeting_.is_connected());
  poll(files.data(), files.size(), looks_again ? look_again_ms : -1);
  if (reads_addresses_ && files[1].revents) read_addresses();
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGTERM) continue;
    is_stopped_ = is_ending_ = true;
  }
}

void RankNode::read_addresses() {
  char byte = 0;
  ssize_t count = 0;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, 0) > 0 && (count = read(STDIN_FILENO, &byte, 1)) == 1 && byte != '\n')
    addresses_line_ += byte;
  if (count == 1 && byte == '\n') {
    addresses_ = split_at_commas(addresses_line_);
    addresses_line_.clear();
    reads_addresses_ = addresses_.size() != options_.nodes;
    if (!reads_addresses_) write_whole(STDOUT_FILENO, "!met\n");
    began_ms_ = now_ms();
  } else if (count <= 0 && (input.revents & (POLLIN | POLLHUP))) {
    usleep(look_again_ms * 1000);  // Nobody is connected at present.
  }
}

/// Ends this node if the addresses have not arrived in time: it would hold its GPUs in vain.
void RankNode::give_up_without_addresses() {
  const auto limit = options_.addresses_within_ms;
  if (limit == 0 || now_ms() - began_ms_ < limit) return;
  write_whole(STDERR_FILENO,
              "pipe: the driver has not sent the addresses of the other nodes in time\n");
  code_ = 125;
}

void RankNode::try_to_meet() {
  std::vector<std::string> candidates = addresses_;
  if (!options_.addresses_are_of_node_0 || candidates.empty()) candidates.resize(1);
  std::string address, why;  // The first address, and why no connection with it is possible.
  for (const auto& candidate : candidates) {
    const auto failure = meeting_.connect(candidate.c_str(), options_.port.c_str());
    if (failure.empty()) return meeting_.tell(Meeting::State::waits);
    if (why.empty()) address = candidate, why = failure;
  }
  const auto waited = now_ms() - began_ms_;
  const auto place = address.empty() ? "" : " at " + address + ":" + options_.port;
  const auto reason = options_.node == 0 ? "cannot listen at port " + options_.port + ": " + why
                                         : "node " + std::to_string(options_.node) +
                                               " cannot reach node 0" + place + ": " + why;
  if (waited >= notice_after_ms && !has_noticed_) {
    has_noticed_ = true;
    write_whole(STDERR_FILENO, "pipe: " + reason + "; retrying\n");
  }
  // Without a driver between the nodes (Slurm), another program of the machine has the port.
  const bool has_port_taken = options_.addresses_are_of_node_0 && options_.node == 0;
  if (waited < options_.begun_within_ms && !has_port_taken) return;
  write_whole(STDERR_FILENO, "pipe: " + reason + "\n");
  code_ = 125;
}

bool RankNode::is_running() const {
  for (const auto& process : processes_)
    if (process.pid > 0) return true;
  return false;
}

std::string RankNode::filled(std::string value, unsigned local) const {
  replace_all(value, "{rank}", std::to_string(rank(local)));
  replace_all(value, "{local_rank}", std::to_string(local));
  replace_all(value, "{restart}", begun_ > 0 ? "-" + std::to_string(begun_) : "");
  replace_all(value, "{gpus}", own_gpus({}, local));
  for (std::size_t node = 0; node < addresses_.size(); ++node)
    replace_all(value, "{node" + std::to_string(node) + "}", addresses_[node]);
  return value;
}

/// Returns the GPUs of a process, separated by commas.
/// @param all the names of the node's GPUs; where a name is missing, the GPU's number is returned
std::string RankNode::own_gpus(const std::vector<std::string>& all, unsigned local) const {
  std::string gpus;
  for (unsigned i = 0; i < options_.own_gpus; ++i) {
    const auto index = local * options_.own_gpus + i;
    gpus += (i > 0 ? "," : "") + (index < all.size() ? all[index] : std::to_string(index));
  }
  return gpus;
}

void RankNode::become(unsigned local) {
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  for (const auto& name : options_.filled)
    if (const char* value = getenv(name.c_str())) {
      // Slurm has written a list of GPUs; a value of the driver's contains a mark.
      const bool is_list =
          options_.own_gpus > 0 && name == "CUDA_VISIBLE_DEVICES" && !strchr(value, '{');
      const auto text = is_list ? own_gpus(split_at_commas(value), local) : filled(value, local);
      setenv(name.c_str(), text.c_str(), 1);
    }
  execvp(options_.command[0], options_.command);
  const int error = errno;
  // orchestrators/containers/container_end.cpp searches the output for this text.
  write_whole(own_errors_,
              std::string("pipe-init: ") + options_.command[0] + ": " + strerror(error) + "\n");
  _exit(error == ENOENT ? 127 : 126);
}

/// Starts a process of the node, and returns its identifier; -1 if it cannot be started.
pid_t RankNode::start(unsigned local, int out, int err) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(none, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  become(local);
}

void RankNode::begin() {
  if (options_.addresses_are_of_node_0) addresses_ = meeting_.addresses();
  is_meeting_ = is_ending_ = has_told_ = false;
  kill_at_ = 0;
  for (unsigned local = 0; local < options_.processes; ++local) {
    auto& process = processes_[local];
    int out[2], err[2];
    const bool has_pipes = pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0;
    if (has_pipes) process.pid = start(local, out[1], err[1]);
    if (!has_pipes || process.pid < 0) {
      write_whole(STDERR_FILENO, std::string("pipe: cannot start rank ") +
                                     std::to_string(rank(local)) + ": " + strerror(errno) + "\n");
      code_ = 125;
      return end_processes();
    }
    for (const int end : {out[1], err[1]}) close(end);
    process.out.from = out[0];
    process.err.from = err[0];
  }
  ++begun_;
}

/// Passes available output on.
/// @param is_last passes on all output and closes the streams, which remaining processes may keep
/// open
void RankNode::pass_on(bool is_last) {
  for (auto& process : processes_)
    for (auto* stream : {&process.out, &process.err}) {
      pollfd now{stream->from, POLLIN, 0};
      while (stream->from >= 0 && poll(&now, 1, 0) > 0) {
        if (!stream->pass_on(process.prefix)) stream->close_source();
        if (!is_last) break;
      }
      if (is_last) stream->close_source();
    }
}

void RankNode::reap() {
  int status = 0;
  rusage used{};
  for (pid_t child; (child = wait4(-1, &status, WNOHANG, &used)) > 0;)
    for (unsigned local = 0; local < options_.processes; ++local) {
      if (processes_[local].pid != child) continue;
      processes_[local].pid = -1;
      handle_end(local, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), used);
    }
}

void RankNode::handle_end(unsigned local, int code, const rusage& used) {
  const bool is_enough = code == 0 && options_.first_is_enough && options_.node == 0 && local == 0;
  const bool has_failed = code != 0 && !is_ending_;
  const bool is_executed = code != 126 && code != 127;
  const bool begins_again =
      has_failed && is_executed && begun_ <= options_.restarts && meeting_.is_whole();
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  const auto microseconds = [](const timeval& each) {
    return each.tv_sec * 1'000'000LL + each.tv_usec;
  };
  pass_on(false);  // Output that has arrived is written before the line about the end.
  char line[200];
  snprintf(line, sizeof line, "!%u %d %s %lld %lld %ld\n", rank(local), code,
           begins_again ? "again"
           : has_failed ? "failed"
                        : "ended",
           time.tv_sec * 1'000'000LL + time.tv_nsec / 1000,
           microseconds(used.ru_utime) + microseconds(used.ru_stime), used.ru_maxrss);
  write_whole(STDOUT_FILENO, line);
  if (begins_again) {
    write_whole(STDERR_FILENO, processes_[local].prefix + "[nodes] ended with exit code " +
                                   std::to_string(code) + "; all processes start again (restart " +
                                   std::to_string(begun_) + " of " +
                                   std::to_string(options_.restarts) + ")\n");
    meeting_.tell(Meeting::State::failed);
  }
  if (has_failed && !begins_again) code_ = code;
  if (is_enough && !is_ending_) code_ = 0;
  if (has_failed || is_enough) return end_processes();
  if (is_ending_ || is_running()) return;
  if (options_.restarts == 0) {
    is_ending_ = true;
    code_ = 0;
  } else {
    has_told_ = true;
    meeting_.tell(Meeting::State::has_ended);
  }
}

void RankNode::end_processes() {
  if (is_ending_) return;
  is_ending_ = true;
  kill_at_ = now_ms() + grace_ms;
  signal_descendants(SIGTERM, {});
}

void RankNode::obey(Meeting::Command command) {
  if (is_stopped_ || code_) return;
  if (command == Meeting::Command::begin) begin();
  if (command == Meeting::Command::stop) end_processes();
  if (command == Meeting::Command::end) {
    is_ending_ = true;
    code_ = 0;
  }
}

/// Called once the processes of this node have ended. Kills the descendants that they have left,
/// and tells node 0 that this node waits for the next begin, unless the exit code is known.
void RankNode::finish_ending() {
  if (!is_stopped_) {
    constexpr int max_looks = 100;
    for (int look = 0; look < max_looks && signal_descendants(SIGKILL, {}) > 0; ++look) {
      usleep(10'000);
      while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    }
  }
  pass_on(true);
  is_ending_ = false;
  if (is_stopped_ && !code_) code_ = 128 + SIGTERM;
  if (code_) return;
  is_meeting_ = true;
  meeting_.tell(Meeting::State::waits);
}

}  // namespace

int run_ranks(char** arguments) { return RankNode(read_options(arguments)).run(); }

}  // namespace pipeline::agent
