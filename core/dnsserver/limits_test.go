package dnsserver

import (
	"bytes"
	"context"
	golog "log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
)

func TestLimitsOf(t *testing.T) {
	n := func(i int) *int { return &i }
	second := time.Second
	plain := limitsOf("dns", nil)
	if plain.connections < MinStreamConnections || plain.connections > MaxStreamConnections || plain.client != plain.connections/2 || plain.pipeline != 64 || plain.bits4 != 32 || plain.bits6 != 56 {
		t.Errorf("got %+v", plain)
	}
	if plain.queryBytes != 65535 || plain.unread != 1<<20 || plain.handshake != 3*time.Second || plain.waiting < MinWaiting || plain.inFlightBytes < MinInFlightBytes {
		t.Errorf("got %+v", plain)
	}
	for scheme, want := range map[string][4]int{ // connections, of a client, streams, header
		"https": {200, 0, 250, 96 << 10}, "https3": {200, 0, 256, 16 << 10}, "quic": {200, 0, 256, 96 << 10}, "grpc": {200, 0, 256, 16 << 10},
	} {
		l := limitsOf(scheme, nil)
		if got := [4]int{l.connections, l.client, l.streams, l.headerBytes}; got != want {
			t.Errorf("%s: got %v, want %v", scheme, got, want)
		}
		// A directive of the scheme's own goes before the common one.
		c := &Config{MaxHTTPSConnections: n(1), MaxHTTPS3Connections: n(1), MaxQUICConnections: n(1), MaxGRPCConnections: n(1), MaxHTTPS3Streams: n(0), MaxQUICStreams: n(2), MaxGRPCStreams: n(2)}
		c.Limits.Connections, c.Limits.Streams = n(5), n(6)
		l = limitsOf(scheme, []*Config{{}, c})
		streams := map[string]int{"https": 6, "https3": 0, "quic": 2, "grpc": 2}[scheme]
		if l.connections != 1 || l.streams != streams {
			t.Errorf("%s: got %d, %d", scheme, l.connections, l.streams)
		}
		l = limitsOf(scheme, []*Config{{Limits: Limits{Connections: n(5), Streams: n(6), ClientConnections: n(2), Handshake: &second}}})
		if l.connections != 5 || l.streams != 6 || l.client != 2 || l.handshake != time.Second {
			t.Errorf("%s: got %+v", scheme, l)
		}
	}
	for _, scheme := range []string{"dns", "tls"} {
		l := limitsOf(scheme, []*Config{{Limits: Limits{Connections: n(10)}}})
		if l.connections != 10 || l.client != 5 {
			t.Errorf("%s: got %+v", scheme, l)
		}
	}
}

func TestLimitsThatDiffer(t *testing.T) {
	var out bytes.Buffer
	golog.SetOutput(&out)
	defer golog.SetOutput(os.Stderr)
	n := func(i int) *int { return &i }
	l := limitsOf("dns", []*Config{{}, {Limits: Limits{Pipeline: n(7)}}, {Limits: Limits{Pipeline: n(8)}}, {Limits: Limits{Pipeline: n(7)}}})
	if l.pipeline != 7 || strings.Count(out.String(), "different limits") != 1 || !strings.Contains(out.String(), "7 and 8: using 7") {
		t.Errorf("got %d, log %s", l.pipeline, out.String())
	}
}

// TestLimitsOfTheProcess sets them in one block of several listeners.
func TestLimitsOfTheProcess(t *testing.T) {
	d := newContext(new(caddy.Instance)).(*dnsContext)
	for i, scheme := range []string{"dns", "dns"} {
		c := &Config{Zone: ".", Port: []string{"1053", "1054"}[i], Transport: scheme, ListenHosts: []string{""}}
		c.first = c
		d.add(place{i, 0}, c)
	}
	many, bytes := 77, 5<<20
	d.configs[1].Limits.Waiting, d.configs[1].Limits.InFlightBytes = &many, &bytes
	servers, err := d.MakeServers()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		l := s.(server).base().limits
		if l.waiting != 77 || l.inFlightBytes != 5<<20 {
			t.Errorf("got %d, %d", l.waiting, l.inFlightBytes)
		}
	}
}

func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("memory.max", "max\n")
	write("pods/memory.max", "2000000\n")
	write("pods/one/memory.max", "3000000\n")
	write("pods/two/memory.max", "1000000\n")
	write("memory/memory.limit_in_bytes", "9223372036854771712\n")
	write("memory/box/memory.limit_in_bytes", "500000\n")
	for own, want := range map[string]int64{
		"":                                  math.MaxInt64,
		"0::/\n":                            math.MaxInt64,
		"0::/pods/one\n":                    2000000,
		"0::/pods/two\n":                    1000000,
		"0::/pods/three/four\n":             2000000,
		"4:memory:/box\n0::/\n":             500000,
		"4:memory:/\n3:cpu:/box\n":          math.MaxInt64,
		"4:memory:/box\n0::/pods/one\n":     500000,
		"1:name=systemd:/x\n0::/pods/two\n": 1000000,
		"nonsense\n":                        math.MaxInt64,
	} {
		if got := groupLimitOf(root, own); got != want {
			t.Errorf("%q: got %d, want %d", own, got, want)
		}
	}
}

func TestMemoryToKeep(t *testing.T) {
	for _, tc := range []struct {
		group, told, want int64
		ok                bool
	}{
		{100 << 20, math.MaxInt64, 94371840, true},
		{100 << 20, 50 << 20, 0, false}, // GOMEMLIMIT
		{math.MaxInt64, math.MaxInt64, 0, false},
	} {
		if got, ok := memoryToKeep(tc.group, tc.told); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%+v: got %d, %t", tc, got, ok)
		}
	}
}

func TestMemoryLimits(t *testing.T) {
	for _, tc := range []struct {
		memory                        int64
		connections, waiting, inBytes int
	}{
		{1 << 20, 1024, 1024, 16 << 20},
		{170 << 20, 1360, 5440, 170 << 20 / 8},
		{1 << 40, 16384, 65536, 1 << 30},
		{math.MaxInt64, 16384, 65536, 1 << 30},
	} {
		if a, b, c := connectionLimit(tc.memory), waitingLimit(tc.memory), inFlightLimit(tc.memory); a != tc.connections || b != tc.waiting || c != tc.inBytes {
			t.Errorf("%d: got %d, %d, %d", tc.memory, a, b, c)
		}
	}
}

// TestWorkersEnter has goroutines of others wait in the workers' places.
func TestWorkersEnter(t *testing.T) {
	w := newWorkers(2)
	ctx := t.Context()
	for range 2 {
		if !w.enter(ctx) {
			t.Fatal("refused below the bound")
		}
	}
	if w.try(taskFunc(func() {})) {
		t.Error("taken beyond the bound")
	}
	late, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if w.enter(late) {
		t.Error("entered beyond the bound")
	}
	in := make(chan bool)
	go func() { in <- w.enter(ctx) }()
	time.Sleep(5 * time.Millisecond)
	w.leave()
	if !<-in {
		t.Error("refused though there is room")
	}
	w.leave()
	ran := make(chan struct{})
	if !w.try(taskFunc(func() { close(ran) })) {
		t.Error("refused below the bound")
	}
	<-ran
	w.limit(1)
	time.Sleep(5 * time.Millisecond)
	if w.try(taskFunc(func() {})) {
		t.Error("taken beyond the new bound")
	}
	w.leave()
	w.limit(0)
	for range 100 {
		if !w.enter(ctx) {
			t.Fatal("0 is a bound")
		}
	}
}
