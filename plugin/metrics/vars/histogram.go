package vars

import (
	"math"
	"sort"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// histogram counts observations as a Prometheus histogram does, with classic and native buckets, but for one goroutine.
type histogram struct {
	n, zero uint64
	sum     float64
	classic []uint64 // by bound, not cumulative; what is greater than all bounds is in n alone
	native  []octave // sorted by exp once it is read
}

// octave has the native buckets between two powers of two: bucket i ends at 2^(exp-1+i/16), i from 1 on.
type octave struct {
	exp int
	n   [perOctave]uint64
}

const (
	nativeSchema = 4 // whose buckets are 2^(1/16) wide, the widest within plugin.NativeHistogramBucketFactor
	perOctave    = 1 << nativeSchema
)

// nativeBounds are the upper bounds of an octave's buckets, as fractions of math.Frexp.
var nativeBounds = func() (b [perOctave]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i)/perOctave) / 2
	}
	return b
}()

// bucket is the native bucket of a positive value: bucket i of the octave exp.
func bucket(v float64) (exp, i int) {
	frac, exp := math.Frexp(v)
	if i = sort.SearchFloat64s(nativeBounds[:], frac); i == perOctave {
		return exp + 1, 0
	}
	return exp, i
}

// sizeBuckets of sizes that most messages have.
var smallSizes = func() (t [1024]struct {
	exp int16
	i   uint8
}) {
	for v := 1; v < len(t); v++ {
		exp, i := bucket(float64(v))
		t[v].exp, t[v].i = int16(exp), uint8(i)
	}
	return t
}()

// size observes a size in octets.
func (h *histogram) size(v int, bounds []float64) {
	h.n++
	h.sum += float64(v)
	h.enter(float64(v), bounds, 1)
	switch {
	case v == 0:
		h.zero++
	case v < len(smallSizes):
		s := &smallSizes[v]
		h.octave(int(s.exp)).n[s.i]++
	default:
		exp, i := bucket(float64(v))
		h.octave(exp).n[i]++
	}
}

// duration observes n times the same duration.
func (h *histogram) duration(d time.Duration, n uint64, bounds []float64) {
	v := d.Seconds()
	h.n += n
	h.sum += v * float64(n)
	h.enter(v, bounds, n)
	if v <= 0 {
		h.zero += n
		return
	}
	exp, i := bucket(v)
	h.octave(exp).n[i] += n
}

func (h *histogram) enter(v float64, bounds []float64, n uint64) {
	if h.classic == nil {
		h.classic = make([]uint64, len(bounds))
	}
	for i, b := range bounds {
		if v <= b {
			h.classic[i] += n
			return
		}
	}
}

func (h *histogram) octave(exp int) *octave {
	for i := range h.native {
		if h.native[i].exp == exp {
			return &h.native[i]
		}
	}
	h.native = append(h.native, octave{exp: exp})
	return &h.native[len(h.native)-1]
}

// take adds what other counted to h, and makes other empty.
func (h *histogram) take(other *histogram) {
	if other.n == 0 {
		return
	}
	h.n += other.n
	h.zero += other.zero
	h.sum += other.sum
	if h.classic == nil {
		h.classic = make([]uint64, len(other.classic))
	}
	for i, n := range other.classic {
		h.classic[i] += n
		other.classic[i] = 0
	}
	for i := range other.native {
		o := &other.native[i]
		mine := h.octave(o.exp)
		for k, n := range o.n {
			mine.n[k] += n
		}
		o.n = [perOctave]uint64{}
	}
	other.n, other.zero, other.sum = 0, 0, 0
}

// addTo adds what h counted to a histogram as it is exported.
func (h *histogram) addTo(out *dto.Histogram) {
	if h.n == 0 {
		return
	}
	count, sum := out.GetSampleCount()+h.n, out.GetSampleSum()+h.sum
	out.SampleCount, out.SampleSum = &count, &sum
	var below uint64
	for i, b := range out.Bucket {
		if i < len(h.classic) {
			below += h.classic[i]
		}
		n := b.GetCumulativeCount() + below
		b.CumulativeCount = &n
	}
	if out.Schema != nil {
		h.addNative(out)
	}
}

// addNative adds the native buckets. The key of a bucket is its place among all buckets of the schema.
func (h *histogram) addNative(out *dto.Histogram) {
	zero := out.GetZeroCount() + h.zero
	out.ZeroCount = &zero
	counts := spans(out.PositiveSpan, out.PositiveDelta)
	for _, o := range h.native {
		for i, n := range o.n {
			if n > 0 {
				key := (o.exp-1)*perOctave + i
				for s := int32(nativeSchema); s > out.GetSchema(); s-- { // the client library may have gone over to wider buckets
					key = (key + 1) >> 1
				}
				counts[key] += int64(n)
			}
		}
	}
	out.PositiveSpan, out.PositiveDelta = pack(counts)
}

// spans reads buckets as they are exported: runs of keys, and the difference of each count to the one before.
func spans(in []*dto.BucketSpan, deltas []int64) map[int]int64 {
	counts := map[int]int64{}
	key, i, count := 0, 0, int64(0)
	for _, s := range in {
		key += int(s.GetOffset())
		for range s.GetLength() {
			count += deltas[i]
			counts[key] = count
			key++
			i++
		}
	}
	return counts
}

// pack is the opposite of spans.
func pack(counts map[int]int64) (out []*dto.BucketSpan, deltas []int64) {
	keys := make([]int, 0, len(counts))
	for k, n := range counts {
		if n != 0 {
			keys = append(keys, k)
		}
	}
	sort.Ints(keys)
	next, last := 0, int64(0) // the key that would go on with the span, and the count before
	for i, k := range keys {
		if i == 0 || k != next {
			offset, length := int32(k-next), uint32(0)
			out = append(out, &dto.BucketSpan{Offset: &offset, Length: &length})
		}
		*out[len(out)-1].Length++
		deltas = append(deltas, counts[k]-last)
		last, next = counts[k], k+1
	}
	return out, deltas
}
