// Not ricci's.
#pragma once
inline constexpr int kElements = 12;
