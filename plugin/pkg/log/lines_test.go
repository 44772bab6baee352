package log_test

import (
	"bytes"
	"fmt"
	golog "log"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// plain makes Go's log write to out, without times.
func plain(t testing.TB, out *slow) {
	t.Helper()
	old, flags := golog.Writer(), golog.Flags()
	golog.SetOutput(out)
	golog.SetFlags(0)
	t.Cleanup(func() {
		log.Sync()
		golog.SetOutput(old)
		golog.SetFlags(flags)
	})
}

// slow is an output that counts its writes and may take its time.
type slow struct {
	mu     sync.Mutex
	b      bytes.Buffer
	writes int
	pause  time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.pause)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	return s.b.Write(p)
}

func (s *slow) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *slow) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestLinesAreGathered(t *testing.T) {
	out := new(slow)
	plain(t, out)
	log.Line([]byte("one"))
	log.Line([]byte("two"))
	if got := out.String(); got != "" {
		t.Errorf("written at once: %q", got)
	}
	log.Info("three")
	log.Line([]byte("four"))
	log.Flush()
	log.Flush()
	if got := out.String(); got != "one\ntwo\n[INFO] three\nfour\n" || out.writes != 3 {
		t.Errorf("%d writes of %q", out.writes, got)
	}
	for range 5000 {
		log.Line([]byte("a line of some length, to make much of it"))
	}
	if out.writes < 4 || out.writes > 20 {
		t.Errorf("%d writes", out.writes)
	}
	log.Sync()
	if n := strings.Count(out.String(), "some length"); n != 5000 {
		t.Errorf("%d lines", n)
	}
}

// Lines are written if nobody is idle, time and again, and who is idle does not write each of them.
func TestLinesAreWrittenInTime(t *testing.T) {
	out := new(slow)
	plain(t, out)
	for n := range 3 {
		log.Lines([]byte("one\ntwo\n"))
		log.Lines(nil)
		want := strings.Repeat("one\ntwo\n", n+1)
		for end := time.Now().Add(10 * time.Second); out.String() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("got %q, want %q", out, want)
			}
		}
	}
	log.Flush()
	writes := out.count()
	begin := time.Now()
	for range 1000 {
		log.Line([]byte("three"))
		log.Idle()
	}
	// One in 90 ms, and one of the timer in 100 ms at most.
	if n, most := out.count()-writes, 2+int(time.Since(begin)/(40*time.Millisecond)); n > most {
		t.Errorf("%d writes of who is idle, want %d", n, most)
	}
}

func TestLinesOfManyToASlowOutput(t *testing.T) {
	out := &slow{pause: time.Millisecond}
	plain(t, out)
	var wg sync.WaitGroup
	const writers, lines = 8, 500
	for w := range writers {
		wg.Go(func() {
			for i := range lines {
				log.Line(fmt.Appendf(nil, "writer %d line %d %s", w, i, strings.Repeat("x", 1000)))
				if i%50 == 0 {
					log.Flush()
				}
			}
		})
	}
	wg.Wait()
	log.Sync()
	next := [writers]int{}
	for line := range strings.Lines(out.String()) {
		var w, i int
		if _, err := fmt.Sscanf(line, "writer %d line %d", &w, &i); err != nil || next[w] != i {
			t.Fatalf("%q: want line %d, %v", line[:20], next[w], err)
		}
		next[w]++
	}
	for w, n := range next {
		if n != lines {
			t.Errorf("%d lines of writer %d", n, w)
		}
	}
}

func TestLineWithFlags(t *testing.T) {
	out := new(slow)
	plain(t, out)
	golog.SetFlags(golog.Lmsgprefix)
	golog.SetPrefix("p ")
	defer golog.SetPrefix("")
	log.Line([]byte("one"))
	if got := out.String(); got != "p one\n" {
		t.Errorf("got %q", got)
	}
}

func BenchmarkLine(b *testing.B) {
	plain(b, &slow{})
	line := []byte(`[INFO] 192.0.2.1:53 - 7 "A IN www.example.org. udp 44 false 1232" NOERROR qr,aa,rd 63 0.000012s`)
	b.ReportAllocs()
	for b.Loop() {
		log.Line(line)
	}
}
