"""The input doctor: whether a model is shown its images as it learnt them, and its answers are read in its order."""
