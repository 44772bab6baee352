package proxyproto

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
)

// The library's reader, which works on streams, is the oracle.
func FuzzParseHeader(f *testing.F) {
	for _, s := range []string{
		head + "aa",
		"aa",
		"0d0a0d0a000d0a515549540a 20000000 aa",
		"0d0a0d0a000d0a515549540a 21120010 c6336407 c0000202 3039 0035 04000100 cc",
		"0d0a0d0a000d0a515549540a 21220024 20010db8000000000000000000000001 20010db8000000000000000000000002 3039 0035 aa",
		"0d0a0d0a000d0a515549540a 2111000c c6336407 c0000202 3039 0035 aa",
	} {
		f.Add(octets(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := parseHeader(b)

		r := bufio.NewReader(bytes.NewReader(b))
		want, wantErr := proxyproto.Read(r)
		rest, _ := io.ReadAll(r)
		if wantErr == nil && want.Version == 2 {
			usable := want.Command.IsLocal() || want.TransportProtocol.IsDatagram() && !want.TransportProtocol.IsUnix()
			if (err == nil) != usable {
				t.Fatalf("%x: got %v, the library reads %+v", b, err, want)
			}
		}
		if err != nil || h.relayed && len(b) > 4096 { // longer ones are too long for the library
			return
		}
		if !h.relayed {
			return // the library does not take all of these
		}
		if wantErr != nil {
			t.Fatalf("%x: got %v, the library says %v", b, h, wantErr)
		}
		if got := newAddr(h.client, nil); got.String() != want.SourceAddr.String() || !bytes.Equal(payload, rest) {
			t.Fatalf("%x: got %v, %x, the library reads %v, %x", b, got, payload, want.SourceAddr, rest)
		}
	})
}

// Whatever comes, a datagram is either read or dropped, and never grows.
func FuzzOpen(f *testing.F) {
	f.Add(octets(f, head+"aa"), byte(0), false)
	f.Add(octets(f, head), byte(0), true)
	f.Add([]byte("aa"), byte(3), true)
	f.Fuzz(func(t *testing.T, b []byte, policy byte, track bool) {
		c := &PacketConn{
			PacketConn:     &fake{},
			ConnPolicy:     always(proxyproto.Policy(policy % 5)),
			ValidateHeader: func(h *proxyproto.Header) error { return nil },
		}
		if track {
			c.UDPSessionTrackingTTL = time.Minute
		}
		for range 2 {
			payload, from, err := c.open(b, proxyAddr, time.Now())
			if err != nil {
				if payload != nil || from != nil {
					t.Fatalf("got %x, %v and %v", payload, from, err)
				}
				continue
			}
			if !bytes.HasSuffix(b, payload) || from == nil || from.String() == "" {
				t.Fatalf("got %x, %v of %x", payload, from, b)
			}
		}
	})
}

func TestParseHeaderDoesNotAllocate(t *testing.T) {
	b := octets(t, head+"aa")
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := parseHeader(b); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func TestNoHeader(t *testing.T) {
	for _, b := range [][]byte{nil, {0x0d}, []byte("PROXY UDP4"), proxyproto.SIGV2[:11]} {
		if _, _, err := parseHeader(b); !errors.Is(err, proxyproto.ErrNoProxyProtocol) {
			t.Errorf("%x: got %v", b, err)
		}
	}
}

// replay is a connection on which one datagram comes again and again.
type replay struct {
	net.PacketConn
	b []byte
}

func (r *replay) ReadFrom(p []byte) (int, net.Addr, error) { return copy(p, r.b), proxyAddr, nil }

func BenchmarkReadFrom(b *testing.B) {
	c := &PacketConn{PacketConn: &replay{b: octets(b, head+"0102030405060708090a0b0c0d0e0f10")}}
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.ReadFrom(p); err != nil {
			b.Fatal(err)
		}
	}
}
