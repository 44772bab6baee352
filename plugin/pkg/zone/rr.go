package zone

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// This file is the bridge to records as github.com/miekg/dns has them.

// AddRR is Add for a dns.RR of class IN; nothing of it is kept.
func (b *Builder) AddRR(rr dns.RR) error {
	return packed(rr, func(r Record) error { return b.Add(r.Owner, r.Type, r.TTL, r.RData) })
}

// AddRR is Add for a dns.RR of class IN, RemoveRR is Remove; nothing of it is kept.
func (e *Edit) AddRR(rr dns.RR) error {
	return packed(rr, func(r Record) error { return e.Add(r.Owner, r.Type, r.TTL, r.RData) })
}

func (e *Edit) RemoveRR(rr dns.RR) error {
	return packed(rr, func(r Record) error { return e.Remove(r.Owner, r.Type, r.RData) })
}

var errNoData = errors.New("no data")

// packed calls f with a record in wire form, which holds until f returns. miekg/dns has records without data for
// updates, and reads some from text: nobody reads a message with one.
func packed(rr dns.RR, f func(Record) error) error {
	h := rr.Header()
	var room [1024]byte
	buf := room[:]
	if n := dns.Len(rr) + 1; n > len(buf) {
		buf = make([]byte, n)
	}
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return fmt.Errorf("record %s %s: %w", h.Name, dns.TypeToString[h.Rrtype], err)
	}
	owner := wire.NameLen(buf[:n])
	if owner == 0 || n < owner+10 {
		return fmt.Errorf("record %s %s: %w", h.Name, dns.TypeToString[h.Rrtype], wire.ErrName)
	}
	if n == owner+10 && !wire.MayBeEmpty(h.Rrtype) {
		return errNoData
	}
	return f(Record{buf[:owner], h.Rrtype, h.Ttl, buf[owner+10 : n]})
}

// RDataOf is the RDATA of a dns.RR in wire form, uncompressed.
func RDataOf(rr dns.RR) (rdata []byte, err error) {
	err = packed(rr, func(r Record) error {
		rdata = slices.Clone(r.RData)
		return nil
	})
	return rdata, err
}

// RR is the record as a dns.RR in memory of its own, of type *dns.RFC3597 if miekg/dns would misread its data.
func (r Record) RR() (dns.RR, error) {
	head := dns.RR_Header{Name: wire.Text(r.Owner), Rrtype: r.Type, Class: dns.ClassINET, Ttl: r.TTL, Rdlength: uint16(len(r.RData))}
	if wire.Misread(r.Type, r.RData) {
		return &dns.RFC3597{Hdr: head, Rdata: hex.EncodeToString(r.RData)}, nil
	}
	rr, _, err := dns.UnpackRRWithHeader(head, r.RData, 0)
	if err != nil {
		return nil, fmt.Errorf("record %s %s: %w", head.Name, dns.TypeToString[r.Type], err)
	}
	return rr, nil
}

// Text is the record as a line of a master file, without its end. Data that have no text of their type, or one that
// would be read as others, are in the form for all types (RFC 3597 §5).
func (r Record) Text() (string, error) {
	text, err := r.line()
	if strings.HasPrefix(text, "$") { // which would begin a directive
		text = `\` + text
	}
	return text, err
}

func (r Record) line() (string, error) {
	rr, err := r.RR()
	if err != nil {
		return "", err
	}
	if _, opaque := rr.(*dns.RFC3597); opaque && wire.Misread(r.Type, r.RData) {
		return r.generic(), nil
	}
	if text := rr.String(); slices.Contains(written[:], r.Type) || r.isReadFrom(text) {
		return text, nil
	}
	return r.generic(), nil
}

func (r Record) generic() string {
	return fmt.Sprintf("%s\t%d\tIN\t%s\t\\# %d %x", wire.Text(r.Owner), r.TTL, typeText(r.Type), len(r.RData), r.RData)
}

// written is types that zones are full of, and that always have a text.
var written = [...]uint16{
	wire.TypeA, wire.TypeAAAA, wire.TypeNS, wire.TypeSOA, wire.TypeCNAME, wire.TypePTR, wire.TypeMX, wire.TypeSRV, wire.TypeTXT,
	wire.TypeRRSIG, dns.TypeDNSKEY, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeDS, dns.TypeTLSA, dns.TypeSSHFP,
}

// isReadFrom reports whether text is read as the record.
func (r Record) isReadFrom(text string) (same bool) {
	rr, err := dns.NewRR(text)
	return err == nil && rr != nil && packed(rr, func(o Record) error { same = bytes.Equal(o.RData, r.RData); return nil }) == nil && same
}

// typeText is the name of a type.
func typeText(typ uint16) string { return dns.Type(typ).String() }
