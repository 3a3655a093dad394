// The machine's signing key for checkpoints: Ed25519, in state/keys/, made once, never regenerated
// in silence (a half-written or unreadable key is an error).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/verify.h"
#include "session/log_file.h"

namespace nd7 {

struct MachineKey {
  std::string id; // hex of the first 8 bytes of BLAKE3(public key)
  std::string public_hex;
  Signer sign;
};
Result<MachineKey> machine_key(const std::string& keys_directory);
// Public part only, for verify; fails when there is none.
Result<std::string> machine_public_key(const std::string& keys_directory);
// Of every key this machine has had (keys/ID.pub), 64 hex digits each; none when there is no key.
Result<std::vector<std::string>> machine_public_keys(const std::string& keys_directory);

// For core/verify.h: answers for these public keys, every other id is unknown.
Result<SignatureChecker> signature_checker(const std::vector<std::string>& public_keys);

} // namespace nd7
