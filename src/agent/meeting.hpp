/// @file
/// The connections between the agents of a step's nodes, by which all of them begin, begin again
/// and end together.
#pragma once

#include <string>
#include <vector>

#include <poll.h>

namespace pipeline::agent {

/// Returns the parts of a text that commas separate.
std::vector<std::string> parts_of(const std::string& text);

/// The agent of node 0 listens, and the others connect to it: no name is looked up. Each tells it
/// its state, and it answers all once all have the same. A connection of anybody else is not heard,
/// and keeps no agent out.
class Meeting {
 public:
  enum class State { waits, failed, has_ended };
  enum class Command { none, begin, stop, end };

  /// @param id a word that agents of other attempts do not know
  Meeting(unsigned node, unsigned nodes, std::string id);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Listens at, or connects to, the port of node 0. Returns an empty text on success, else the
  /// reason; the caller may try again.
  std::string connect(const char* address, const char* port);
  bool is_connected() const { return is_connected_; }
  /// Addresses of all nodes, as they and node 0 have reached one another; known once all begin.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Returns whether this agent's connections hold: on node 0 those to all nodes, on others the one
  /// to node 0.
  bool is_whole() const;

  /// Tells the state of this node's processes. When all wait, all begin; when one has failed, all
  /// stop; when all have ended, all end.
  void tell(State state);
  /// Adds what poll(2) has to watch.
  void watch(std::vector<pollfd>& files) const;
  /// Reads and returns what this node shall do next.
  Command next();

 private:
  struct Peer {
    int file = -1;
    unsigned node = 0;  ///< 0: not known yet.
    std::string bytes = {};
  };
  bool read(Peer& peer);
  void accept_all();
  void make_room();
  void hear(Peer& peer);
  bool is_connected_to(unsigned long node) const;
  void note(unsigned node, State state);
  std::string begin_text();
  void tell_all(const std::string& command);

  const unsigned node_, nodes_;
  const std::string id_;
  int listener_ = -1;
  bool is_connected_ = false, is_broken_ = false, is_stopping_ = false;
  std::vector<Peer> peers_;   ///< Of node 0: all others. Of the others: node 0.
  std::vector<char> states_;  ///< Of node 0, by node; 0: not known.
  std::vector<Command> commands_;
  std::vector<std::string> addresses_;
};

}  // namespace pipeline::agent
