package dnsserver

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/memory"

	"github.com/coredns/caddy"
)

func TestLimitsOf(t *testing.T) {
	n := func(i int) *int { return &i }
	second := time.Second
	plain := limitsOf("dns", nil)
	if plain.Connections < min(MinStreamConnections, memory.Files()/FilesPerConnection) || plain.Connections > MaxStreamConnections || plain.Client != plain.Connections/2 || plain.Pipeline != 64 || plain.Bits4 != 32 || plain.Bits6 != 56 {
		t.Errorf("got %+v", plain)
	}
	if plain.QueryBytes != 65535 || plain.Unread != 1<<20 || plain.Handshake != 3*time.Second || plain.waiting < MinWaiting || plain.inFlightBytes < MinInFlightBytes {
		t.Errorf("got %+v", plain)
	}
	for scheme, want := range map[string][4]int{ // connections, of a client, streams, header
		"https": {200, 0, 250, 96 << 10}, "https3": {200, 0, 256, 16 << 10}, "quic": {200, 0, 256, 96 << 10}, "grpc": {200, 0, 256, 16 << 10},
	} {
		l := limitsOf(scheme, nil)
		if got := [4]int{l.Connections, l.Client, l.Streams, l.HeaderBytes}; got != want {
			t.Errorf("%s: got %v, want %v", scheme, got, want)
		}
		if l.StreamsSet {
			t.Errorf("%s: nobody asked for %d streams", scheme, l.Streams)
		}
		// A directive of the scheme's own goes before the common one.
		c := &Config{MaxHTTPSConnections: n(1), MaxHTTPS3Connections: n(1), MaxQUICConnections: n(1), MaxGRPCConnections: n(1), MaxHTTPS3Streams: n(0), MaxQUICStreams: n(2), MaxGRPCStreams: n(2)}
		c.Limits.Connections, c.Limits.Streams = n(5), n(6)
		l = limitsOf(scheme, []*Config{{}, c})
		streams := map[string]int{"https": 6, "https3": 0, "quic": 2, "grpc": 2}[scheme]
		if l.Connections != 1 || l.Streams != streams || !l.StreamsSet {
			t.Errorf("%s: got %d, %d", scheme, l.Connections, l.Streams)
		}
		l = limitsOf(scheme, []*Config{{Limits: Limits{Connections: n(5), Streams: n(6), ClientConnections: n(2), Handshake: &second}}})
		if l.Connections != 5 || l.Streams != 6 || !l.StreamsSet || l.Client != 2 || l.Handshake != time.Second {
			t.Errorf("%s: got %+v", scheme, l)
		}
	}
	for _, scheme := range []string{"dns", "tls"} {
		l := limitsOf(scheme, []*Config{{Limits: Limits{Connections: n(10)}}})
		if l.Connections != 10 || l.Client != 5 {
			t.Errorf("%s: got %+v", scheme, l)
		}
	}
}

// The read option of timeouts is for the handshake, too, unless that has a limit of its own; the last one counts.
func TestHandshakeTakesAsLongAsTheFirstQuery(t *testing.T) {
	second, minute := time.Second, time.Minute
	for _, tc := range []struct {
		scheme string
		group  []*Config
		want   time.Duration
	}{
		{"tls", []*Config{{}}, DefaultHandshakeTimeout},
		{"tls", []*Config{{ReadTimeout: second}, {ReadTimeout: minute}, {}}, minute},
		{"https", []*Config{{ReadTimeout: second}}, second},
		{"quic", []*Config{{ReadTimeout: minute}}, DefaultHandshakeTimeout},
		{"https3", []*Config{{ReadTimeout: minute}}, DefaultHandshakeTimeout},
		{"tls", []*Config{{ReadTimeout: minute, Limits: Limits{Handshake: &second}}}, second},
	} {
		if l := limitsOf(tc.scheme, tc.group); l.Handshake != tc.want {
			t.Errorf("%s: got %v, want %v", tc.scheme, l.Handshake, tc.want)
		}
	}
}

func TestLimitsThatDiffer(t *testing.T) {
	out := logtest.Capture(t)
	n := func(i int) *int { return &i }
	l := limitsOf("dns", []*Config{{}, {Limits: Limits{Pipeline: n(7)}}, {Limits: Limits{Pipeline: n(8)}}, {Limits: Limits{Pipeline: n(7)}}})
	if l.Pipeline != 7 || strings.Count(out.String(), "different limits") != 1 || !strings.Contains(out.String(), "7 and 8: using 7") {
		t.Errorf("got %d, log %s", l.Pipeline, out.String())
	}
}

// TestLimitsOfTheProcess sets them in one block of several listeners.
func TestLimitsOfTheProcess(t *testing.T) {
	d := newContext(new(caddy.Instance)).(*dnsContext)
	for i, scheme := range []string{"dns", "dns"} {
		c := &Config{Zone: ".", Port: []string{"1053", "1054"}[i], Transport: scheme, ListenHosts: []string{""}}
		c.first = c
		d.add(keyPos{i, 0}, c)
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
