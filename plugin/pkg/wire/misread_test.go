package wire

import (
	"bytes"
	"testing"

	"github.com/miekg/dns"
)

// Data of ISDN records, with a subaddress, with an empty one or without one (RFC 1183 §3.2), is the same in a message
// that was unpacked.
func TestUnpackISDN(t *testing.T) {
	for _, section := range []int{1, 2, 3} { // answer, authority, additional
		for _, data := range []string{"\x0212", "\x0212\x00", "\x0212\x013", "\x00"} {
			b := []byte{0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0}
			b[5+2*section] = 2
			for _, rec := range []string{"\x01a\x00\x00\x10\x00\x01\x00\x00\x00\x3c\x00\x02\x01x", "\x01a\x00\x00\x14\x00\x01\x00\x00\x00\x3c\x00" + string(rune(len(data))) + data} {
				b = append(b, rec...)
			}
			m := new(dns.Msg)
			if err := UnpackInto(m, b); err != nil {
				t.Fatalf("section %d, data %x: %v", section, data, err)
			}
			if again, err := m.Pack(); err != nil || !bytes.Equal(again, b) {
				t.Errorf("section %d, data %x: %x came of %x, %v", section, data, again, b, err)
			}
		}
	}
}

// FuzzUnpackInto: what miekg/dns reads is read, with as many records, and what it does not read does no harm.
func FuzzUnpackInto(f *testing.F) {
	f.Add([]byte("\x00\x01\x80\x00\x00\x00\x00\x02\x00\x00\x00\x01\x01a\x00\x00\x14\x00\x01\x00\x00\x00\x3c\x00\x03\x0212\x01a\x00\x01\x04\x00\x01\x00\x00\x00\x3c\x00\x06\x0a\x81\xc0\x00\x02\x01\x01a\x00\x00\x1e\x00\x01\x00\x00\x00\x3c\x00\x05\x01b\x00\x40\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, plain := new(dns.Msg), new(dns.Msg)
		err, plainErr := UnpackInto(m, b), plain.Unpack(b)
		switch {
		case plainErr != nil:
		case err != nil:
			t.Errorf("%x: %v", b, err)
		case len(m.Answer) != len(plain.Answer) || len(m.Ns) != len(plain.Ns) || len(m.Extra) != len(plain.Extra):
			t.Errorf("%x: %v, miekg/dns reads %v", b, m, plain)
		}
	})
}
