// Numbers as text.
#pragma once
#include <cstdint>
#include <string>

namespace ricci::apps {

std::string with_commas(int64_t number);                       // "1,234,567"
std::string counted(int64_t number, const std::string& noun);  // "1 shard", "2,000 shards"
std::string short_number(double number);                       // "950", "15.2k", "3.1M"
std::string clock_time(double seconds);                        // "0:41", "2:03:10"
// Formats the number with a pattern such as "{:.3f}". Numbers of 1e9 or more have three significant digits, such as 3.54e+20.
std::string show_number(const char* pattern, double number);

}  // namespace ricci::apps
