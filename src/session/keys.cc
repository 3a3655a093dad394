#include "session/keys.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "base/bytes.h"
#include "core/chain.h"
#include "os/files.h"

namespace nd7 {
namespace {

// keys/machine.key: "nd7-ed25519 1 <64 hex: seed>\n", 0600. keys/ID.pub: "<64 hex: public key>\n",
// one for every key this machine has had, so that old checkpoints stay verifiable.
constexpr std::string_view key_prefix = "nd7-ed25519 1 ";
constexpr std::size_t key_file_size = key_prefix.size() + 2 * crypto_sign_SEEDBYTES + 1;
constexpr std::size_t public_file_size = 2 * crypto_sign_PUBLICKEYBYTES + 1;
constexpr std::string_view public_suffix = ".pub";

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Result<> start_sodium() {
  if (sodium_init() < 0) return fail("libsodium does not start");
  return {};
}

// Secret bytes, wiped when the last signer that holds them is gone.
struct Secret {
  std::array<unsigned char, crypto_sign_SECRETKEYBYTES> bytes{};
  Secret() = default;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { sodium_memzero(bytes.data(), bytes.size()); }
};

std::string id_of(std::string_view public_bytes) {
  return blake3_hex(public_bytes).substr(0, 16);
}

Result<std::string> read_seed(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return os_error("open " + path);
  if (!S_ISREG(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & 077) != 0) {
    return fail(path + " is open to others, a link, or not yours", "chmod 600 " + path);
  }
  auto text = os::read_file(path, key_file_size);
  if (!text) return std::unexpected(text.error());
  if (text->size() == key_file_size && text->starts_with(key_prefix) && text->back() == '\n') {
    auto seed = unhex(std::string_view(*text).substr(key_prefix.size(), 2 * crypto_sign_SEEDBYTES));
    sodium_memzero(text->data(), text->size());
    if (seed) return *seed;
  }
  return fail(path + " is damaged; it is not made anew because old checkpoints name it",
              "restore it from a backup, or move it away to begin with a new key");
}

bool has_public_keys(const std::string& directory) {
  auto names = os::list_directory(directory);
  return names && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return name.ends_with(public_suffix);
         });
}

Result<> make_seed(const std::string& directory, const std::string& path) {
  if (has_public_keys(directory)) {
    return fail(path + " is gone, though this machine has signed with it",
                "restore it from a backup, or move " + directory + " away to begin with a new key");
  }
  std::array<char, crypto_sign_SEEDBYTES> seed;
  randombytes_buf(seed.data(), seed.size());
  std::string text = std::string(key_prefix) + hex({seed.data(), seed.size()}) + "\n";
  sodium_memzero(seed.data(), seed.size());
  auto made = os::replace_file(path, text, {.mode = 0600, .sync = true, .replace = false});
  sodium_memzero(text.data(), text.size());
  // Another process was first: its key is the machine's.
  if (!made && made.error().os_errno == EEXIST) return {};
  return made;
}

Result<> publish(const std::string& directory, const MachineKey& key) {
  const std::string path = directory + "/" + key.id + std::string(public_suffix);
  if (auto text = os::read_file(path, public_file_size)) {
    if (*text == key.public_hex + "\n") return {};
    return fail(path + " is damaged; it is not the public part of machine.key");
  }
  auto made = os::replace_file(path, key.public_hex + "\n", {.mode = 0600, .replace = false});
  if (!made && made.error().os_errno == EEXIST) return {};
  return made;
}

} // namespace

Result<MachineKey> machine_key(const std::string& keys_directory) {
  if (auto started = start_sodium(); !started) return std::unexpected(started.error());
  if (auto made = os::make_private_directory(keys_directory); !made) {
    return std::unexpected(made.error());
  }
  const std::string path = keys_directory + "/machine.key";
  auto seed = read_seed(path);
  if (!seed && seed.error().os_errno == ENOENT) {
    if (auto made = make_seed(keys_directory, path); !made) return std::unexpected(made.error());
    seed = read_seed(path);
  }
  if (!seed) return std::unexpected(seed.error());
  auto secret = std::make_shared<Secret>();
  std::array<char, crypto_sign_PUBLICKEYBYTES> public_bytes;
  crypto_sign_seed_keypair(reinterpret_cast<unsigned char*>(public_bytes.data()),
                           secret->bytes.data(), bytes_of(*seed));
  sodium_memzero(seed->data(), seed->size());
  MachineKey key;
  key.public_hex = hex({public_bytes.data(), public_bytes.size()});
  key.id = id_of({public_bytes.data(), public_bytes.size()});
  key.sign = [secret](std::string_view message) {
    std::array<char, crypto_sign_BYTES> signature;
    crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr,
                         bytes_of(message), message.size(), secret->bytes.data());
    return hex({signature.data(), signature.size()});
  };
  if (auto done = publish(keys_directory, key); !done) return std::unexpected(done.error());
  return key;
}

Result<std::string> machine_public_key(const std::string& keys_directory) {
  if (auto started = start_sodium(); !started) return std::unexpected(started.error());
  auto seed = read_seed(keys_directory + "/machine.key");
  if (!seed) return std::unexpected(seed.error());
  Secret secret;
  std::array<char, crypto_sign_PUBLICKEYBYTES> public_bytes;
  crypto_sign_seed_keypair(reinterpret_cast<unsigned char*>(public_bytes.data()),
                           secret.bytes.data(), bytes_of(*seed));
  sodium_memzero(seed->data(), seed->size());
  return hex({public_bytes.data(), public_bytes.size()});
}

Result<SignatureChecker> signature_checker(const std::vector<std::string>& public_keys) {
  if (auto started = start_sodium(); !started) return std::unexpected(started.error());
  std::map<std::string, std::string, std::less<>> known; // id -> public key, bytes
  for (const std::string& text : public_keys) {
    auto bytes = unhex(text);
    if (!bytes || bytes->size() != crypto_sign_PUBLICKEYBYTES) {
      return fail("not a public key (64 hex digits): '" + visible(text) + "'");
    }
    known[id_of(*bytes)] = *bytes;
  }
  return
      [known](std::string_view key_id, std::string_view message, std::string_view signature_hex) {
        const auto key = known.find(key_id);
        if (key == known.end()) return SignatureAnswer::unknown_key;
        const auto signature = unhex(signature_hex);
        if (!signature || signature->size() != crypto_sign_BYTES) return SignatureAnswer::bad;
        const bool good = crypto_sign_verify_detached(bytes_of(*signature), bytes_of(message),
                                                      message.size(), bytes_of(key->second)) == 0;
        return good ? SignatureAnswer::good : SignatureAnswer::bad;
      };
}

Result<std::vector<std::string>> machine_public_keys(const std::string& keys_directory) {
  auto names = os::list_directory(keys_directory);
  if (!names) return std::unexpected(names.error());
  std::vector<std::string> keys;
  for (const std::string& name : *names) {
    if (!name.ends_with(public_suffix)) continue;
    auto text = os::read_file(keys_directory + "/" + name, public_file_size);
    if (!text) return std::unexpected(text.error());
    if (text->size() != public_file_size || text->back() != '\n') {
      return fail(keys_directory + "/" + name + " is damaged");
    }
    text->pop_back();
    keys.push_back(*text);
  }
  return keys;
}

} // namespace nd7
