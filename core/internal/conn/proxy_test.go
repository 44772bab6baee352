package conn

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	pkgproxyproto "github.com/coredns/coredns/plugin/pkg/proxyproto"

	"github.com/pires/go-proxyproto"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// policyOf is a policy that is the same for all.
func policyOf(p proxyproto.Policy) proxyproto.ConnPolicyFunc {
	return func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return p, nil }
}

func refusedHeaders(label string) string {
	var b strings.Builder
	for _, why := range []string{"ignored", "rejected", "invalid"} {
		fmt.Fprintf(&b, " %v", testutil.ToFloat64(proxyRefused.WithLabelValues(label, why)))
	}
	return b.String()
}

const (
	proxyV1    = "PROXY TCP4 198.51.100.7 192.0.2.2 12345 53\r\n"
	proxyV1No  = "PROXY UNKNOWN\r\n"
	proxyMagic = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
	proxyV2    = proxyMagic + "\x21\x11\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
	proxyV2TLV = proxyMagic + "\x21\x11\x00\x13\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35\x04\x00\x04aaaa"
	proxyLocal = proxyMagic + "\x20\x00\x00\x00"
	proxyUDP   = proxyMagic + "\x21\x12\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
)

func TestProxyHeaders(t *testing.T) {
	const truth, real, none = "198.51.100.7", "127.0.0.1", "no answer"
	for _, tc := range []struct {
		name   string
		policy proxyproto.Policy
		head   string
		want   string
		counts string // ignored, rejected, invalid
	}{
		{"version 1", proxyproto.USE, proxyV1, truth, " 0 0 0"},
		{"version 2", proxyproto.USE, proxyV2, truth, " 0 0 0"},
		{"with TLV", proxyproto.USE, proxyV2TLV, truth, " 0 0 0"},
		{"LOCAL", proxyproto.USE, proxyLocal, real, " 0 0 0"},
		{"UNKNOWN", proxyproto.USE, proxyV1No, real, " 0 0 0"},
		{"none", proxyproto.USE, "", real, " 0 0 0"},
		{"required", proxyproto.REQUIRE, proxyV2, truth, " 0 0 0"},
		{"required, none", proxyproto.REQUIRE, "", none, " 0 0 1"},
		{"ignored", proxyproto.IGNORE, proxyV1, real, " 1 0 0"},
		{"ignored, none", proxyproto.IGNORE, "", real, " 0 0 0"},
		{"rejected", proxyproto.REJECT, proxyV2, none, " 0 1 0"},
		{"rejected, none", proxyproto.REJECT, "", real, " 0 0 0"},
		{"skipped, none", proxyproto.SKIP, "", real, " 0 0 0"},
		{"skipped", proxyproto.SKIP, proxyV1, none, " 0 0 0"},
		{"bad version 1", proxyproto.USE, "PROXY TCP4 nonsense\r\n", none, " 0 0 1"},
		{"bad version 2", proxyproto.USE, proxyMagic + "\x31\x11\x00\x0c", none, " 0 0 1"},
		{"ignored, bad", proxyproto.IGNORE, "PROXY TCP4 nonsense\r\n", none, " 0 0 1"},
	} {
		s := lineService(t)
		s.Idle, s.Handshake = time.Second, time.Second // of what does not come
		_, addr, _ := serveLines(t, s, newLineServer(), nil, policyOf(tc.policy))
		got := told(t, coretest.Dial(t, addr), tc.head+"who")
		if counts := refusedHeaders(s.Label); got != tc.want || counts != tc.counts {
			t.Errorf("%s: got %s, counted%s, want %s and%s", tc.name, got, counts, tc.want, tc.counts)
		}
	}
}

// A policy that cannot tell has the connection refused, and the next one served.
func TestProxyPolicyFails(t *testing.T) {
	s := lineService(t)
	first := true
	_, addr, _ := serveLines(t, s, newLineServer(), nil, func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		if first {
			first = false
			return proxyproto.USE, errors.New("as asked")
		}
		return proxyproto.USE, nil
	})
	if got := told(t, coretest.Dial(t, addr), proxyV1+"who"); got != "no answer" || refusedHeaders(s.Label) != " 0 1 0" {
		t.Errorf("got %s, counted%s", got, refusedHeaders(s.Label))
	}
	if got := told(t, coretest.Dial(t, addr), proxyV1+"who"); got != "198.51.100.7" {
		t.Errorf("got %s", got)
	}
}

// A header that does not come nobody waits for but its own connection, and not for long.
func TestProxyHeaderIsSlow(t *testing.T) {
	s := lineService(t)
	s.Handshake = 2 * time.Second // of the good one, too
	_, addr, _ := serveLines(t, s, newLineServer(), nil, policyOf(proxyproto.USE))
	began := time.Now()
	slow := coretest.Dial(t, addr)
	io.WriteString(slow, proxyV1[:4])
	if got := told(t, coretest.Dial(t, addr), proxyV1+"who"); got != "198.51.100.7" {
		t.Errorf("got %s", got)
	}
	if !coretest.ClosedAfter(t, slow, began, s.Handshake) || coretest.Limited(s, "handshake_time") != 1 {
		t.Errorf("after %v, counted %d", time.Since(began), coretest.Limited(s, "handshake_time"))
	}
}

// A header may come in parts, each of which is read by itself. One of which the rest does not come in time is not invalid.
func TestProxyHeaderInParts(t *testing.T) {
	for _, head := range []string{proxyV1, proxyV2} {
		for cut := 1; cut < len(head); cut++ {
			client, server := net.Pipe()
			label := t.Name() + fmt.Sprint(len(head), "/", cut)
			c := &proxyConn{Conn: server, refused: Refusals(label), policy: proxyproto.USE, r: bufio.NewReaderSize(server, proxyBuffer)}
			go func() {
				io.WriteString(client, head[:cut])
				io.WriteString(client, head[cut:]+"who")
			}()
			b := make([]byte, 8)
			n, err := c.Read(b)
			if got := c.RemoteAddr().String(); got != "198.51.100.7:12345" || string(b[:n]) != "who" || err != nil {
				t.Errorf("cut at %d of %q: from %s %q, %v", cut, head, got, b[:n], err)
			}
			client.Close()

			client, server = net.Pipe()
			c = &proxyConn{Conn: server, refused: Refusals(label), policy: proxyproto.USE, r: bufio.NewReaderSize(server, proxyBuffer)}
			go func() {
				io.WriteString(client, head[:cut])
				server.SetReadDeadline(time.Now())
			}()
			var late net.Error
			if _, err := c.Read(b); !errors.As(err, &late) || !late.Timeout() {
				t.Errorf("%d of %q: %v", cut, head, err)
			}
			if counts := refusedHeaders(label); counts != " 0 0 0" {
				t.Errorf("%d of %q: counted%s", cut, head, counts)
			}
			client.Close()
		}
	}
}

// TestProxyCountsClients has connections count for the clients that a proxy tells.
func TestProxyCountsClients(t *testing.T) {
	s := lineService(t)
	s.Client = 2
	_, addr, _ := serveLines(t, s, newLineServer(), nil, policyOf(proxyproto.USE))
	for i := range 10 {
		head := fmt.Sprintf("PROXY TCP4 198.51.100.%d 192.0.2.2 12345 53\r\n", i)
		if got, want := told(t, coretest.Dial(t, addr), head+"who"), fmt.Sprintf("198.51.100.%d", i); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	if n := coretest.Limited(s, "client_connections"); n != 0 {
		t.Errorf("counted %d", n)
	}
}

// Proxied leaves a listener alone for which nobody has a policy; a connection of one that has tells both ends.
func TestProxied(t *testing.T) {
	l := coretest.ListenTCP(t)
	defer l.Close()
	if Proxied(l, nil, "dns://:53") != l {
		t.Error("wraps without a policy")
	}
	ours := make(chan net.Conn, 1)
	go func() {
		c, _ := Proxied(l, policyOf(proxyproto.USE), "dns://:53").Accept()
		ours <- c
	}()
	theirs := coretest.Dial(t, l.Addr().String())
	io.WriteString(theirs, proxyV2)
	c := <-ours
	if got := c.RemoteAddr().String() + " " + c.LocalAddr().String(); got != "198.51.100.7:12345 192.0.2.2:53" {
		t.Errorf("from and to %s", got)
	}
	if got := Peer(c); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("the system's peer is %v", got)
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(theirs); err != nil || len(b) != 0 { // ends, though nobody has closed the connection
		t.Errorf("got %q, %v", b, err)
	}
	c.Close()
}

// Counters of a listener are there before anything is counted.
func TestRefusalsFromZero(t *testing.T) {
	label := coretest.Label(t)
	before := testutil.CollectAndCount(proxyRefused)
	Refusals(label).CountFromZero()
	if n := testutil.CollectAndCount(proxyRefused) - before; n != 3 {
		t.Errorf("%d counters", n)
	}
	Refusals(label).Add(pkgproxyproto.Ignored)
	if got := refusedHeaders(label); got != " 1 0 0" {
		t.Errorf("counted%s", got)
	}
}

// FuzzProxyConn begins connections with anything.
func FuzzProxyConn(f *testing.F) {
	for _, head := range []string{proxyV1, proxyV1No, proxyV2, proxyV2TLV, proxyLocal, proxyUDP} {
		f.Add([]byte(head+"rest"), uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, policy uint8) {
		ours, theirs := net.Pipe()
		go func() {
			theirs.SetWriteDeadline(time.Now().Add(time.Second))
			theirs.Write(b)
			theirs.Close()
		}()
		c := &proxyConn{
			Conn: ours, refused: Refusals("dns://:53"), policy: proxyproto.Policy(policy % 5),
			r: bufio.NewReaderSize(ours, proxyBuffer),
		}
		rest, err := io.ReadAll(c)
		if err == nil && !bytes.HasSuffix(b, rest) {
			t.Fatalf("%s of %s", hex.EncodeToString(rest), hex.EncodeToString(b))
		}
		trusted := c.policy == proxyproto.USE || c.policy == proxyproto.REQUIRE
		if c.remote != nil && (!trusted || err != nil) {
			t.Fatalf("%x: the client is %v", b, c.remote)
		}
		c.RemoteAddr()
		ours.Close()
	})
}
