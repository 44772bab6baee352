package main

import (
	"os"
	"runtime"
	"testing"
)

func TestParseStat(t *testing.T) {
	const tail = " S 17 42 42 0 -1 4194560 1 2 3 4 250 50 900 900 20 0 1 0 12345"
	for _, c := range []struct {
		line string
		want procStat
		ok   bool
	}{
		{"42 (coredns)" + tail, procStat{42, 17, 3}, true},
		{"42 (a) b (c d)" + tail, procStat{42, 17, 3}, true},
		{"42 coredns" + tail, procStat{}, false},
		{"42 (coredns) S 17", procStat{}, false},
		{"x (coredns)" + tail, procStat{}, false},
		{"", procStat{}, false},
	} {
		got, err := parseStat(c.line)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %+v, %v", c.line, got, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (coredns) S 17 42 42 0 -1 4194560 1 2 3 4 250 50 900")
	f.Add("1 )(")
	f.Fuzz(func(t *testing.T, line string) {
		if s, err := parseStat(line); err != nil && s != (procStat{}) {
			t.Errorf("%q: %+v with %v", line, s, err)
		}
	})
}

func TestOwnProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("read from /proc")
	}
	all, err := family(os.Getppid())
	if err != nil || len(all) < 2 || all[0].pid != os.Getppid() {
		t.Errorf("the family of the parent: %+v, %v", all, err)
	}
	if m, err := memory(os.Getpid()); err != nil || m < 1<<20 {
		t.Errorf("memory %d, %v", m, err)
	}
}

func TestKibibytes(t *testing.T) {
	text := []byte("VmHWM:\t  900 kB\nVmRSS:\t  512 kB\nRss:\n")
	if a, b, c := kibibytes(text, "VmRSS:"), kibibytes(text, "Rss:"), kibibytes(text, "Pss:"); a != 512 || b != 0 || c != 0 {
		t.Errorf("%d, %d, %d", a, b, c)
	}
}
