// What several seeds say of a model.
#pragma once
#include <cstddef>
#include <vector>

namespace ricci::apps {

// The deviation is that of a sample. The mean of all seeds that there could be lies within `half_width` of the mean with a probability
// of 95%, where single values are normally distributed (Student's t): it is half of the width of the 95% interval. Of a single value,
// deviation and half_width are 0: nothing is known of them.
struct MeanSpread {
  double mean = 0, deviation = 0, half_width = 0;
};
MeanSpread mean_spread(const std::vector<double>& values);

// The 97.5% quantile of Student's t distribution; less than 0.2% off. Error: less than one degree of freedom.
double student_t(size_t degrees_of_freedom);

}  // namespace ricci::apps
