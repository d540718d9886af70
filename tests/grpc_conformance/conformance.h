/* What the client and the server for connect's conformance runner share. */
#include "conformance.acorn.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace connectrpc::conformance::v1;

/* ---- Values of metadata: the runner writes binary ones as base64 ---- */

static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string from_base64(const std::string &text)
{
    std::string bytes;
    unsigned bits = 0;
    int count = 0;
    for (const char c : text) {
        const std::string::size_type digit = digits.find(c);
        if (digit == std::string::npos)
            break;
        bits = bits << 6 | static_cast<unsigned>(digit);
        count += 6;
        if (count >= 8)
            bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
    }
    return bytes;
}

inline std::string value_of(const std::string &name, const std::string &value)
{
    const bool is_binary = name.size() > 4 && name.compare(name.size() - 4, 4, "-bin") == 0;
    return is_binary ? from_base64(value) : value;
}

/* The other way round. */
inline std::string shown_of(const std::string &name, const std::string &value)
{
    std::string text;
    unsigned bits = 0;
    int count = 0;
    if (name.size() < 4 || name.compare(name.size() - 4, 4, "-bin") != 0)
        return value;
    for (const char c : value) {
        bits = bits << 8 | static_cast<unsigned char>(c);
        for (count += 8; count >= 6;)
            text += digits[bits >> (count -= 6) & 63];
    }
    return count ? text + digits[bits << (6 - count) & 63] : text;
}

/* ---- The runner: messages behind their lengths, four bytes, by stdin and stdout ---- */

template <class Message> bool read_message(Message &message)
{
    unsigned char length[4];
    if (std::fread(length, 1, sizeof length, stdin) != sizeof length)
        return false;
    std::string bytes(static_cast<std::size_t>(length[0]) << 24 | length[1] << 16 | length[2] << 8 | length[3], '\0');
    return std::fread(&bytes[0], 1, bytes.size(), stdin) == bytes.size() && message.ParseFromString(bytes);
}

template <class Message> void say(const Message &message)
{
    const std::string bytes = message.SerializeAsString();
    const std::size_t n = bytes.size();
    const char length[] = {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                           static_cast<char>(n)};
    std::fwrite(length, 1, sizeof length, stdout);
    std::fwrite(bytes.data(), 1, n, stdout);
    std::fflush(stdout);
}
