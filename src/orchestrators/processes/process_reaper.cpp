#include "orchestrators/processes/process_reaper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/error.hpp"
#include "core/spawn.hpp"
#include "orchestrators/processes/sandbox.hpp"

namespace pipeline::orchestrators::processes {

struct Request {
  enum class Kind { launch, finish } kind;
  pid_t pid;         ///< The process to finish.
  std::size_t size;  ///< Size of the words in the first file.
  int groups, inherited;
  bool has_sandbox;
};

namespace {

constexpr int max_children = 4096;
constexpr int fixed_files = 4;  ///< The reply, header, out, err; control groups, inherited
                                ///< descriptors and the sandbox follow.
constexpr int max_open_files = 128;
/// Maximum number of looks for strays, a millisecond apart; killed processes are gone by then.
constexpr int max_passes = 5000;

/// The words of a request in a file: offsets from its beginning, which become pointers where it is
/// mapped. An offset of 0 is a null pointer.
struct RequestHeader {
  std::uintptr_t program, folder, arguments, shell_arguments, environment;
};

/// Composes the words; offsets are relative to the beginning of the text.
class WordsWriter {
 public:
  WordsWriter() : bytes_(sizeof(RequestHeader), '\0') {}
  std::uintptr_t word(const std::string& text) {
    const auto at = bytes_.size();
    bytes_.append(text).push_back('\0');
    return at;
  }
  std::uintptr_t list(const std::vector<std::uintptr_t>& words) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const auto at = bytes_.size();
    for (const auto word : words) bytes_.append(reinterpret_cast<const char*>(&word), sizeof word);
    bytes_.append(sizeof(std::uintptr_t), '\0');
    return at;
  }
  std::uintptr_t list(const std::vector<std::string>& texts) {
    std::vector<std::uintptr_t> words;
    words.reserve(texts.size());
    for (const auto& text : texts) words.push_back(word(text));
    return list(words);
  }
  std::string finish(const RequestHeader& words) {
    std::memcpy(bytes_.data(), &words, sizeof words);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

std::string words_of(const LaunchRequest& request) {
  WordsWriter writer;
  std::vector<std::uintptr_t> arguments;
  arguments.reserve(request.arguments.size());
  for (const auto& argument : request.arguments) arguments.push_back(writer.word(argument));
  RequestHeader words{};
  words.program = writer.word(request.program.native());
  words.folder = writer.word(request.folder.native());
  words.arguments = writer.list(arguments);
  arguments.insert(arguments.begin(), writer.word("/bin/sh"));
  arguments.at(1) = words.program;
  words.shell_arguments = writer.list(arguments);
  words.environment = writer.list(request.environment);
  return writer.finish(words);
}

// The code below runs in the reaper, a forked process without exec, and may only make calls that
// are safe after a fork of a multithreaded program: no allocation.

struct Child {
  pid_t pid;  ///< 0: unused.
  int reply;  ///< -1: a process that cannot be killed.
};
std::array<Child, max_children> registered;

struct Reply {
  pid_t pid;
  int error;
  LaunchEnd end;
};

/// Everything that a step's process needs to start.
struct Launch {
  const char* program;
  char* const* arguments;
  char* const* shell_arguments;
  char* const* environment;
  const char* folder;
  const int* files;
  int groups, inherited;
  bool has_sandbox;
  pid_t parent;
  volatile int error;
};

void begin(Launch& launch) {
  core::begin_child(launch.parent, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  dup2(STDOUT_FILENO, STDIN_FILENO);  // Stdin is /dev/null.
  dup2(launch.files[2], STDOUT_FILENO);
  dup2(launch.files[3], STDERR_FILENO);
  const int* const groups = launch.files + fixed_files;
  for (int i = 0; i < launch.groups; ++i)
    if (write(groups[i], "0", 1) < 0) launch.error = errno;
  if (!launch.error && chdir(launch.folder) != 0) launch.error = errno;
  if (!launch.error && launch.has_sandbox)
    launch.error = Sandbox::enter(groups[launch.groups + launch.inherited]);
  if (launch.error) _exit(127);
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (int i = 0; i < launch.inherited; ++i) fcntl(groups[launch.groups + i], F_SETFD, 0);
  core::prepare_exec();
  execve(launch.program, launch.arguments, launch.environment);
  // A script without `#!` is run by the shell, as by execvp(3).
  if (errno == ENOEXEC) execve("/bin/sh", launch.shell_arguments, launch.environment);
  launch.error = errno;
}

char* const* pointers(char* base, std::uintptr_t list) {
  auto* words = reinterpret_cast<std::uintptr_t*>(base + list);
  for (auto* word = words; *word != 0; ++word) *word += reinterpret_cast<std::uintptr_t>(base);
  return reinterpret_cast<char* const*>(words);
}

Child* find_child(pid_t pid) {
  for (auto& child : registered)
    if (child.pid == pid) return &child;
  return nullptr;
}

void answer(int file, const Reply& reply) {
  // The pipe has room; its reader may be gone.
  while (write(file, &reply, sizeof reply) < 0 && errno == EINTR) {
  }
}

void start_step(const Request& request, const int* files, int count) {
  Reply reply{};
  void* const mapped =
      mmap(nullptr, request.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, files[1], 0);
  auto* const child = find_child(0);
  if (mapped == MAP_FAILED || !child) {
    reply.error = mapped == MAP_FAILED ? errno : EAGAIN;
  } else {
    auto* const base = static_cast<char*>(mapped);
    RequestHeader words;
    std::memcpy(&words, base, sizeof words);
    // The two lists share words, but each has its own pointers.
    Launch launch{base + words.program,
                  pointers(base, words.arguments),
                  pointers(base, words.shell_arguments),
                  pointers(base, words.environment),
                  base + words.folder,
                  files,
                  request.groups,
                  request.inherited,
                  request.has_sandbox,
                  getpid(),
                  0};
    const pid_t pid = core::start_child(launch, begin);
    reply.error = pid < 0 ? errno : launch.error;
    if (reply.error)
      while (pid > 0 && waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    else
      *child = {pid, files[0]};
    reply.pid = pid;
  }
  if (mapped != MAP_FAILED) munmap(mapped, request.size);
  answer(files[0], reply);
  for (int i = reply.error ? 0 : 1; i < count; ++i) close(files[i]);
}

void add(rusage& sum, const rusage& more) {
  timeradd(&sum.ru_utime, &more.ru_utime, &sum.ru_utime);
  timeradd(&sum.ru_stime, &more.ru_stime, &sum.ru_stime);
  if (more.ru_maxrss > sum.ru_maxrss) sum.ru_maxrss = more.ru_maxrss;
  sum.ru_inblock += more.ru_inblock;
  sum.ru_oublock += more.ru_oublock;
}

/// Returns true for a process in the session of a step that has not been finished: the step was
/// stopped, and the process has time to end by itself.
bool has_time(pid_t pid) {
  const auto* const step = find_child(getsid(pid));
  return step && step->reply >= 0;
}

/// Sends SIGKILL once to each stray: a child that is not the first process of a step, and has no
/// time left (has_time()). Returns the number of strays found. Those that cannot be killed are
/// counted in `left` instead, and registered, so that they are skipped from then on.
int kill_strays(int& left, rusage& usage) {
  char text[16384];
  const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t size = 0, got;
  while (size < static_cast<ssize_t>(sizeof text) &&
         (got = read(file, text + size, sizeof text - static_cast<std::size_t>(size))) > 0)
    size += got;
  close(file);
  int found = 0;
  pid_t pid = 0;
  for (ssize_t i = 0; i < size; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      pid = pid * 10 + (text[i] - '0');
      continue;
    }
    if (pid > 0 && !find_child(pid) && !has_time(pid)) {
      const bool refused = kill(pid, SIGKILL) != 0 && errno == EPERM;
      rusage used{};
      const bool is_gone = wait4(pid, nullptr, WNOHANG, &used) == pid;
      if (is_gone) add(usage, used);
      if (refused && !is_gone) {
        ++left;
        if (auto* const child = find_child(0)) *child = {pid, -1};
      } else {
        ++found;  // Counted even if it is gone, because its own children are reparented to this
                  // process.
      }
    }
    pid = 0;
  }
  return found;
}

/// Kills strays until none is left, and adds their usage to `usage`. Returns the number of those
/// that cannot be killed.
int end_strays(rusage& usage) {
  int left = 0;
  for (int pass = 0, empty = 0; pass < max_passes && empty < 2; ++pass) {
    if (kill_strays(left, usage) == 0) {
      ++empty;
      continue;
    }
    empty = 0;
    const timespec moment{0, pass == 0 ? 50'000 : 1'000'000};  // Nanoseconds.
    nanosleep(&moment, nullptr);
  }
  return left;
}

/// Sets a peak of memory that is not above the reaper's own to 0 (unknown). From fork to exec
/// a process has the reaper's memory, and the kernel counts that in the process's peak.
void forget_inherited_peak(rusage& usage) {
  rusage own{};
  if (getrusage(RUSAGE_SELF, &own) == 0 && usage.ru_maxrss <= own.ru_maxrss) usage.ru_maxrss = 0;
}

/// Kills the step's first process and its group. The process has not been waited for, so neither
/// its number nor its group's can have been reused. The process itself is killed first, because it
/// may not have made its group yet; it has no other processes then.
void kill_step(pid_t pid) {
  kill(pid, SIGKILL);
  kill(-pid, SIGKILL);
}

void end_step(Child& child) {
  Reply reply{};
  reply.pid = child.pid;
  kill_step(child.pid);
  siginfo_t info{};
  rusage& usage = reply.end.usage;
  // The C library's waitid() has no usage, and its wait4() no si_code.
  while (syscall(SYS_waitid, P_PID, static_cast<id_t>(child.pid), &info, WEXITED, &usage) < 0 &&
         errno == EINTR) {
  }
  const int file = child.reply;
  child = {};
  reply.end.code = info.si_code;
  reply.end.status = info.si_status;
  reply.end.left = end_strays(usage);
  forget_inherited_peak(usage);
  answer(file, reply);
  close(file);
}

/// Serves the requests from `socket` as the reaper; when the driver has closed it, kills all steps.
/// @param lock descriptor of the lock file; -1: none
[[noreturn]] void reap(int socket, int lock) {
  prctl(PR_SET_NAME, "pipe-reaper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  setsid();  // The driver handles Ctrl-C at the terminal.
  for (int signal : {SIGTERM, SIGHUP, SIGINT, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  dup2(socket, STDIN_FILENO);
  if (lock >= 0) {
    constexpr int kept = STDERR_FILENO + 1;  // closed in each step by its exec
    dup2(lock, kept);
    close_range(STDOUT_FILENO, STDERR_FILENO, 0);
    close_range(kept + 1, ~0U, 0);
  } else {
    close_range(STDOUT_FILENO, ~0U, 0);
  }
  if (open("/dev/null", O_RDWR) != STDOUT_FILENO || dup(STDOUT_FILENO) != STDERR_FILENO) _exit(1);
  for (;;) {
    Request request{};
    alignas(cmsghdr) char control[CMSG_SPACE(max_open_files * sizeof(int))];
    iovec text{&request, sizeof request};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto got = recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    int files[max_open_files], count = 0;
    if (const auto* header = CMSG_FIRSTHDR(&message); header && header->cmsg_type == SCM_RIGHTS) {
      count = static_cast<int>((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(files, CMSG_DATA(header), static_cast<std::size_t>(count) * sizeof(int));
    }
    if (message.msg_flags & MSG_CTRUNC) {  // This process has no room for all of them.
      if (count > 0) answer(files[0], {0, EMFILE, {}});
      for (int i = 0; i < count; ++i) close(files[i]);
    } else if (request.kind == Request::Kind::launch) {
      start_step(request, files, count);
    } else if (auto* const child = find_child(request.pid); child && request.pid > 0) {
      end_step(*child);
    }
  }
  const auto is_step = [](const Child& child) { return child.pid > 0 && child.reply >= 0; };
  for (const auto& child : registered)
    if (is_step(child)) kill_step(child.pid);
  for (auto& child : registered)
    if (is_step(child)) end_step(child);
  rusage ignored{};
  end_strays(ignored);
  _exit(0);
}

}  // namespace

namespace {

/// Locks the file for the reaper, which inherits the descriptor. A failure is not worth an error,
/// because it only means that the next run does not wait for this reaper's end.
core::Descriptor open_lock(const std::filesystem::path& file) {
  if (file.empty()) return core::Descriptor();
  core::make_folders(file.parent_path());
  core::Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock) ::flock(lock.get(), LOCK_SH | LOCK_NB);
  return lock;
}

}  // namespace

bool ProcessReaper::has_ended(const std::filesystem::path& lock) {
  const core::Descriptor file(::open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  ::unlink(lock.c_str());
  return true;
}

void ProcessReaper::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw core::system_error("cannot make a socket", errno);
  core::Descriptor ours(ends[0]), theirs(ends[1]);
  const auto lock = open_lock(lock_);
  const pid_t pid = fork();
  if (pid == 0) reap(theirs.get(), lock.get());
  if (pid < 0)
    throw core::system_error("cannot start the process that watches over the steps", errno);
  pid_ = pid;
  socket_ = std::move(ours);
}

bool ProcessReaper::send(const Request& request, const std::vector<int>& files) {
  iovec text{const_cast<Request*>(&request), sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(max_open_files * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    auto* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), files.data(), files.size() * sizeof(int));
  }
  for (;;) {
    errno = 0;
    if (socket_ && sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return true;
    if (socket_ && errno == EINTR) continue;
    const bool lacks_room = errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
    if (!socket_ || !lacks_room) break;
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
  // The reaper has been killed.
  socket_ = core::Descriptor();
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  return false;
}

core::Descriptor ProcessReaper::launch(const LaunchRequest& request) {
  const auto words = words_of(request);
  const core::Descriptor file(memfd_create("pipe-launch", MFD_CLOEXEC));
  if (!file || write(file.get(), words.data(), words.size()) != static_cast<ssize_t>(words.size()))
    throw core::system_error("cannot start " + request.program.string(), errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw core::system_error("cannot make a pipe", errno);
  core::Descriptor reply(ends[0]);
  const core::Descriptor theirs(ends[1]);
  std::vector<int> files{theirs.get(), file.get(), request.out, request.err};
  files.insert(files.end(), request.control_groups.begin(), request.control_groups.end());
  files.insert(files.end(), request.inherited.begin(), request.inherited.end());
  if (request.sandbox >= 0) files.push_back(request.sandbox);
  if (files.size() > max_open_files)
    throw core::system_error("cannot start " + request.program.string(), EMFILE);
  const Request message{Request::Kind::launch,
                        0,
                        words.size(),
                        static_cast<int>(request.control_groups.size()),
                        static_cast<int>(request.inherited.size()),
                        request.sandbox >= 0};
  if (!socket_) start();
  if (!send(message, files)) {
    start();
    send(message, files);
  }
  return reply;
}

void ProcessReaper::finish(pid_t pid) {
  Request request{};
  request.kind = Request::Kind::finish;
  request.pid = pid;
  send(request, {});
}

namespace {

std::optional<Reply> read_reply(int file) {
  Reply reply{};
  ssize_t got;
  while ((got = read(file, &reply, sizeof reply)) < 0 && errno == EINTR) {
  }
  return got == sizeof reply ? std::optional(reply) : std::nullopt;
}

}  // namespace

std::optional<LaunchStart> ProcessReaper::read_start(int reply) {
  const auto read = read_reply(reply);
  if (!read) return std::nullopt;
  return LaunchStart{read->pid, read->error};
}

std::optional<LaunchEnd> ProcessReaper::read_end(int reply) {
  const auto read = read_reply(reply);
  if (!read) return std::nullopt;
  return read->end;
}

ProcessReaper::~ProcessReaper() {
  if (!socket_) return;
  socket_ = core::Descriptor();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!lock_.empty()) ::unlink(lock_.c_str());
}

}  // namespace pipeline::orchestrators::processes
