package afxdp

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// parseHex reads hexadecimal digits.
func parseHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The frames of two queries, both for "a." of type NS with the id 0x1234; the checksums of
// IPv4 and, over IPv6, of UDP are right. Over IPv4 it may be left out.
const (
	query4 = "0200000000aa 0200000000bb 0800" +
		"45000035 00000000 40118fa0 c6120002 c6120001" + "1f90 0035 0021 0000" +
		"1234 0100 0001 0000 0000 0000 016100 0002 0001 000000"
	query6 = "0200000000aa 0200000000bb 86dd" +
		"60000000 001b 11 40 20010002000000000000000000000002 20010002000000000000000000000001" + "1f90 0035 001b 8854" +
		"1234 0100 0001 0000 0000 0000 016100 0002 0001"
)

// A frame gives the datagram with its addresses, and the reply to it goes back, with checksums that
// come to nought.
func TestFrames(t *testing.T) {
	for _, tc := range []struct{ frame, client, local string }{
		{query4, "198.18.0.2:8080", "198.18.0.1:53"},
		{query6, "[2001:2::2]:8080", "[2001:2::1]:53"},
	} {
		var d Datagram
		f := parseHex(t, tc.frame)
		if f[12] == 8 { // the length says that three octets at the end are no part of it
			binary.BigEndian.PutUint16(f[16:], uint16(len(f)-14-3))
			binary.BigEndian.PutUint16(f[38:], uint16(len(f)-34-3))
			f[24], f[25] = 0, 0
			binary.BigEndian.PutUint16(f[24:], ^sum(0, f[14:34]))
		}
		if !d.parse(f) {
			t.Fatalf("%s: refused", tc.frame)
		}
		if d.Client != netip.MustParseAddrPort(tc.client) || d.Local != netip.MustParseAddrPort(tc.local) ||
			hex.EncodeToString(d.Payload) != "123401000001000000000000016100"+"00020001" {
			t.Errorf("got %v %v %x", d.Client, d.Local, d.Payload)
		}
		for n := range 40 {
			reply := make([]byte, headersLen+n)
			for i := range reply[headersLen:] {
				reply[headersLen+i] = byte(rand.Uint32())
			}
			begin := d.putHeaders(reply, 7)
			// The reply, seen from the other side, is a datagram from where the query went.
			var back Datagram
			if !back.parse(reply[begin:]) || back.Client != d.Local || back.Local != d.Client || len(back.Payload) != n {
				t.Fatalf("the reply is % x", reply[begin:])
			}
			if string(back.MACs[:6]) != string(d.MACs[6:]) || string(back.MACs[6:]) != string(d.MACs[:6]) {
				t.Errorf("the reply goes to %x", back.MACs)
			}
			if got := checksumOf(reply[begin:]); got != 0xffff {
				t.Errorf("%d octets: checksum comes to %04x", n, got)
			}
		}
	}
}

// checksumOf is the sum over a datagram and its addresses, as a receiver makes it, two octets at a
// time.
func checksumOf(f []byte) uint16 {
	p := f[14:]
	addresses, udp := p[12:20], p[20:]
	if p[0]>>4 == 6 {
		addresses, udp = p[8:40], p[40:]
	}
	s := uint32(protocolUDP + len(udp))
	for _, b := range [][]byte{addresses, udp} {
		for i, o := range b {
			s += uint32(o) << (8 * (1 - i%2))
		}
	}
	for s>>16 > 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// What is broken is refused. A checksum may be left out over IPv4, and be begun only.
func TestChecksum(t *testing.T) {
	for _, tc := range []struct {
		frame string
		told  uint16
		want  bool
	}{
		{query4, 0, true}, {query4, 1, false}, {query4, 0x3c2f, true}, {query4, 0x3c30, false}, {query4, 0x8c57, true},
		{query6, 0, false}, {query6, 1, false}, {query6, 0x8854, true}, {query6, 0x8855, false}, {query6, 0x4035, true},
	} {
		f := parseHex(t, tc.frame)
		at := etherLen + ip6Len + 6
		if tc.frame == query4 {
			at = etherLen + ip4Len + 6
			binary.BigEndian.PutUint16(f[16:], uint16(len(f)-etherLen))
			binary.BigEndian.PutUint16(f[38:], uint16(len(f)-etherLen-ip4Len))
			f[24], f[25] = 0, 0
			binary.BigEndian.PutUint16(f[24:], ^sum(0, f[etherLen:][:ip4Len]))
		}
		binary.BigEndian.PutUint16(f[at:], tc.told)
		var d Datagram
		if got := d.parse(f); got != tc.want {
			t.Errorf("IPv%d, checksum %04x: taken %v, want %v", f[etherLen]>>4, tc.told, got, tc.want)
		}
	}
}

// A checksum of UDP that comes to nought is sent as all ones: nought would say that there is none
// (RFC 768).
func TestNoughtChecksum(t *testing.T) {
	var d Datagram
	if !d.parse(parseHex(t, query6)) {
		t.Fatal("refused")
	}
	reply := make([]byte, headersLen+2)
	begin := d.putHeaders(reply, 0)
	// Two octets that are the checksum without them make it nought with them.
	copy(reply[headersLen:], reply[headersLen-2:headersLen])
	d.putHeaders(reply, 0)
	if got := binary.BigEndian.Uint16(reply[headersLen-2:]); got != 0xffff || checksumOf(reply[begin:]) != 0xffff {
		t.Errorf("checksum %04x", got)
	}
}

// The sum is that of two octets at a time.
func TestSum(t *testing.T) {
	b := make([]byte, 70)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	for n := range len(b) {
		for _, from := range []uint32{0, 1, 0xffff, 0xffffffff} {
			want := uint64(from)
			for i, o := range b[:n] {
				want += uint64(o) << (8 * (1 - i%2))
			}
			for want>>16 > 0 {
				want = want>>16 + want&0xffff
			}
			if got := sum(from, b[:n]); got != uint16(want) {
				t.Fatalf("%d octets from %x: %04x, want %04x", n, from, got, want)
			}
		}
	}
	all := []byte(strings.Repeat("\xff", 64))
	if got := sum(0xffff, all); got != 0xffff {
		t.Errorf("all ones come to %04x", got)
	}
}

// Arbitrary frames are refused, or give a datagram that lies in them and can be answered.
func FuzzParse(f *testing.F) {
	f.Add(parseHex(f, query4))
	f.Add(parseHex(f, query6))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var d Datagram
		if !d.parse(frame) {
			return
		}
		if len(d.Payload) > len(frame)-etherLen-ip4Len-udpLen || d.Client.Port() == 0 || !d.Client.Addr().IsValid() ||
			d.Client.Addr().Is4() != d.Local.Addr().Is4() {
			t.Fatalf("%+v of % x", d, frame)
		}
		reply := make([]byte, headersLen+len(d.Payload))
		copy(reply[headersLen:], d.Payload)
		begin := d.putHeaders(reply, 1)
		if checksumOf(reply[begin:]) != 0xffff {
			t.Fatalf("the reply is % x", reply[begin:])
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	var d Datagram
	query := parseHex(b, query6)
	reply := make([]byte, headersLen+100)
	b.ReportAllocs()
	for b.Loop() {
		if !d.parse(query) || d.putHeaders(reply, 1) == 0 {
			continue
		}
	}
}
