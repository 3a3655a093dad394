// What a process of the session asks for, after the object was resolved: the input of decide().
// Pure values; no descriptors, no Linux words.
#pragma once

#include <cstdint>
#include <string>

#include "core/address.h"

namespace nd7 {

// Identity of a file system object, independent of its names.
struct ObjectId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

enum class Access : std::uint8_t {
  read,  // open for reading, list a directory
  write, // create, change, remove, rename, link, metadata: whatever changes the object or its name
};

// One path and what is to be done with the object there. `path` is absolute and resolved: no link,
// dot or dot-dot left in it. A rename is two of these (both ends).
struct FileAction {
  Access access = Access::read;
  std::string path;
  ObjectId object; // zero when it does not exist yet
  bool exists = false;
  bool is_directory = false;
  bool made_by_session = false; // the object, or the top entry of the shared place it lies in, was
                                // created by this session (kept by the gate, by object)
};

struct ConnectAction {
  Address address;
  std::string name;           // the name this address was resolved from, empty if unknown
  bool own_listener = false;  // a listener of this session holds the address (by socket, not port)
  bool local_machine = false; // the address is one of this machine's own, or in a directly
                              // connected prefix (the caller of decide knows the interfaces)
};

} // namespace nd7
