package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/miekg/dns"
)

// nameAfter is for each type whose RDATA has names for github.com/miekg/dns what stands before the first one.
var nameAfter = map[uint16]string{
	TypeNS: "", TypeCNAME: "", TypePTR: "", TypeDNAME: "", dns.TypeMD: "", dns.TypeMF: "", dns.TypeMB: "", dns.TypeMG: "", dns.TypeMR: "",
	dns.TypeNSAPPTR: "", dns.TypeNXT: "", dns.TypeNSEC: "", dns.TypeTKEY: "", dns.TypeTSIG: "",
	TypeMX: "\x00\x01", dns.TypeAFSDB: "\x00\x01", dns.TypeRT: "\x00\x01", dns.TypeKX: "\x00\x01", dns.TypeLP: "\x00\x01", dns.TypePX: "\x00\x01",
	dns.TypeSVCB: "\x00\x01", dns.TypeHTTPS: "\x00\x01", TypeSRV: "\x00\x01\x00\x02\x00\x03", TypeSOA: "", dns.TypeMINFO: "", dns.TypeRP: "", dns.TypeTALINK: "",
	TypeRRSIG: string(make([]byte, 18)), dns.TypeSIG: string(make([]byte, 18)), dns.TypeNAPTR: "\x00\x01\x00\x02\x01s\x04http\x00",
	dns.TypeIPSECKEY: "\x0A\x03\x02", dns.TypeAMTRELAY: "\x0A\x03", dns.TypeHIP: "\x02\x01\x00\x03hikey",
}

// toRoot is a pointer to the root at the end of surveyed's question.
const toRoot = "\xC1\x0A"

// surveyed is a message of as many records of a type as fit into 40000 octets, each with a pointer as its RDATA behind
// what stands there, to the question, of 127 labels, or to the root.
func surveyed(typ uint16, before string, long bool) []byte {
	b := append(make([]byte, HeaderLen), append(bytes.Repeat([]byte{1, 'x'}, 127), 0)...)
	b = append(b, 0, TypeA, 0, ClassIN)
	b[5] = 1
	rdata := append([]byte(before), 0xC0, HeaderLen)
	if !long {
		rdata = append([]byte(before), toRoot...)
	}
	n := 0
	for ; len(b) < 40000; n++ {
		b = append(b, 0, byte(typ>>8), byte(typ), 0, ClassIN, 0, 0, 0, 0)
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(rdata))), rdata...)
	}
	binary.BigEndian.PutUint16(b[6:], uint16(n))
	return b
}

// Names in the RDATA of each type that has some cost what they are long, wherever they stand in it; and cost nothing
// when they are short.
func TestNamesInRDATACost(t *testing.T) {
	for typ, before := range nameAfter {
		if Affordable(surveyed(typ, before, true)) {
			t.Errorf("%s: thousands of names of 255 octets are affordable", dns.Type(typ))
		}
		if !Affordable(surveyed(typ, before, false)) {
			t.Errorf("%s: names of one octet are not affordable", dns.Type(typ))
		}
	}
	// What has no names is octets, and so is a gateway that is an address (RFC 4025 §2.5, RFC 8777 §4.2.3).
	for typ, before := range map[uint16]string{TypeTXT: "\x02", TypeAAAA: "", 65280: "", dns.TypeIPSECKEY: "\x0A\x01\x02", dns.TypeAMTRELAY: "\x0A\x01", dns.TypeHIP: ""} {
		if !Affordable(surveyed(typ, before, true)) {
			t.Errorf("%s: octets that are no names cost", dns.Type(typ))
		}
	}
}

// The second name of a type's RDATA costs, too; and so do all servers of a HIP record (RFC 8005 §5).
func TestFurtherNamesCost(t *testing.T) {
	for typ, before := range map[uint16]string{
		TypeSOA: toRoot, dns.TypeMINFO: toRoot, dns.TypeRP: toRoot, dns.TypeTALINK: toRoot,
		dns.TypePX: "\x00\x01" + toRoot, dns.TypeHIP: "\x00\x01\x00\x00" + toRoot + toRoot,
	} {
		if Affordable(surveyed(typ, before, true)) {
			t.Errorf("%s: thousands of names of 255 octets are affordable", dns.Type(typ))
		}
	}
}

// Owners and questions cost, too, and the effort that a message is worth grows with it.
func TestOwnersCost(t *testing.T) {
	pointers := func(n int, longest bool) []byte {
		b := surveyed(TypeTXT, "", true)[:HeaderLen+MaxName+4]
		to := byte(HeaderLen)
		if !longest {
			to += 240
		}
		for range n {
			b = append(b, 0xC0, to, 0, TypeTXT, 0, ClassIN, 0, 0, 0, 0, 0, 2, 1, 'x')
		}
		binary.BigEndian.PutUint16(b[6:], uint16(n))
		return b
	}
	for _, tc := range []struct {
		n       int
		longest bool
		want    bool
	}{{1, true, true}, {50, true, true}, {4000, true, false}, {4000, false, true}} {
		if got := Affordable(pointers(tc.n, tc.longest)); got != tc.want {
			t.Errorf("%d owners, longest %v: %v", tc.n, tc.longest, got)
		}
	}
	// As many questions as the header says.
	b := surveyed(TypeTXT, "", true)[:HeaderLen+MaxName+4]
	for range 8000 {
		b = append(b, 0xC0, HeaderLen, 0, TypeA, 0, ClassIN)
	}
	for n, want := range map[int]bool{1: true, 8001: false} {
		if binary.BigEndian.PutUint16(b[4:], uint16(n)); Affordable(b) != want {
			t.Errorf("%d questions: affordable %v", n, !want)
		}
	}
}

// What is malformed costs nothing behind that: nobody reads on. It is left to the reader to say what is wrong.
func TestMalformedIsAffordable(t *testing.T) {
	whole := surveyed(TypeNS, "", true)
	for what, spoil := range map[string]func(b []byte) []byte{
		"no header":               func(b []byte) []byte { return b[:HeaderLen-1] },
		"a header alone":          func(b []byte) []byte { return b[:HeaderLen] },
		"a cut question":          func(b []byte) []byte { return b[:100] },
		"a label that is none":    func(b []byte) []byte { b[HeaderLen] = 0x80; return b },
		"a pointer to itself":     func(b []byte) []byte { b[HeaderLen], b[HeaderLen+1] = 0xC0, HeaderLen; return b },
		"RDATA beyond the end":    func(b []byte) []byte { b[HeaderLen+MaxName+4+9] = 0xFF; return b },
		"RDATA that is cut":       func(b []byte) []byte { return b[:HeaderLen+MaxName+4+12] },
		"a record that is cut":    func(b []byte) []byte { return b[:HeaderLen+MaxName+4+8] },
		"a name beyond 255":       func(b []byte) []byte { b[HeaderLen+MaxName+4], b[HeaderLen+MaxName+5] = 0x3F, 0xC0; return b },
		"a pointer that is cut":   func(b []byte) []byte { return append(b[:HeaderLen+MaxName+4], 0xC0) },
		"fewer records than told": func(b []byte) []byte { return b[:HeaderLen+MaxName+4] },
	} {
		b := spoil(bytes.Clone(whole))
		if !Affordable(b) {
			t.Errorf("%s: not affordable", what)
		}
		if m, err := UnpackMsg(append(b, make([]byte, max(0, HeaderLen-len(b)))...)); err == ErrDear || m == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if m, err := UnpackMsg(whole); err != ErrDear || m.Id != 0 || len(m.Answer) != 0 {
		t.Errorf("the whole: %v", err)
	}
}
