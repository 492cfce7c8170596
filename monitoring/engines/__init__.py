"""What engines tell of their own requests: histograms of the engines' own buckets, merged and read honestly."""
