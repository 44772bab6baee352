package dynupdate

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// BenchmarkSignWhole is the first signing of a zone of 50,000 names, and the most memory that it takes meanwhile.
func BenchmarkSignWhole(b *testing.B) {
	const hosts = 50_000
	for _, kind := range []string{"", " nsec3"} {
		b.Run("denials"+kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dir := b.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "db"), []byte(manyHosts(hosts)), 0o600); err != nil {
					b.Fatal(err)
				}
				stop, most := make(chan struct{}), make(chan uint64)
				go func() { most <- peak(stop) }()
				newBed(b, dir, fmt.Sprintf("max_records %d\nmax_bytes 1000000000\nlog off\nsign key file %s%s", 10*hosts, newKey(b, dir, dns.ECDSAP256SHA256), kind)).stop()
				close(stop)
				b.ReportMetric(float64(<-most)/hosts, "peak-B/name")
			}
		})
	}
}

// peak is the most memory that the heap takes until stop is closed, in octets.
func peak(stop chan struct{}) (most uint64) {
	for {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		select {
		case <-stop:
			return most
		case <-time.After(20 * time.Millisecond):
		}
	}
}
