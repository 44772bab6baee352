package zone

import (
	"bytes"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Records whose relay is not the only one, which miekg/dns misreads, are kept and packed as they are (RFC 8777 §4.2.2).
func TestOpenRelay(t *testing.T) {
	for _, data := range []string{"\x0a\x80", "\x0a\x81\xc0\x00\x02\x01", "\x0a\x83\x05relay\x03net\x00", "\x0a\x03\x05relay\x03net\x00"} {
		r := Record{Owner: []byte("\x01a\x03org\x00"), Type: dns.TypeAMTRELAY, TTL: 60, RData: []byte(data)}
		rr, err := r.RR()
		if err != nil {
			t.Errorf("%x: %v", data, err)
			continue
		}
		if h := rr.Header(); h.Name != "a.org." || h.Rrtype != dns.TypeAMTRELAY || h.Class != dns.ClassINET || h.Ttl != 60 {
			t.Errorf("%x: %v", data, h)
		}
		if got, err := RDataOf(dns.Copy(rr)); err != nil || !bytes.Equal(got, r.RData) {
			t.Errorf("%x: is packed as %x, %v", data, got, err)
		}
		if text, err := r.Text(); err != nil || !strings.HasPrefix(text, "a.org.\t60\tIN\tAMTRELAY\t") {
			t.Errorf("%x: %q, %v", data, text, err)
		}
	}
	r := Record{Owner: []byte("\x01a\x03org\x00"), Type: dns.TypeISDN, TTL: 60, RData: []byte("\x0212")} // RFC 1183 §3.2: no subaddress
	rr, err := r.RR()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := RDataOf(rr); err != nil || !bytes.Equal(got, r.RData) {
		t.Errorf("%v: is packed as %x, %v", rr, got, err)
	}
}
