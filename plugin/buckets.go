package plugin

import "github.com/prometheus/client_golang/prometheus"

// Buckets of the duration histograms, in seconds.
var (
	// TimeBuckets reach from a quarter of a millisecond to eight seconds, doubling.
	TimeBuckets = prometheus.ExponentialBuckets(0.00025, 2, 16)
	// SlimTimeBuckets reach as far in steps of ten, for histograms with many series.
	SlimTimeBuckets = prometheus.ExponentialBuckets(0.00025, 10, 5)
	// NativeHistogramBucketFactor is the growth of a bucket to the next in native histograms.
	NativeHistogramBucketFactor = 1.05
)
