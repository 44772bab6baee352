package zone

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Readers of messages take RDATA that ends early for one with empty names and zeros. In a zone that would be sent on to
// others, who do not: so what comes from clients is looked at once more.

// form tells how the RDATA of a type with names is built: octets before them, how many there are, and octets behind
// them, -1 for any number.
type form struct{ lead, names, tail int }

// formOf is the form of data of a type; ok is false for a type without names in it.
func formOf(typ uint16, rdata []byte) (f form, ok bool) {
	switch typ {
	case wire.TypeNS, 3, 4, wire.TypeCNAME, 7, 8, 9, wire.TypePTR, 23, wire.TypeDNAME: // MD MF MB MG MR NSAP-PTR
		return form{0, 1, 0}, true
	case wire.TypeSOA:
		return form{0, 2, 20}, true
	case 14, 17, 58: // MINFO RP TALINK
		return form{0, 2, 0}, true
	case wire.TypeMX, 18, 21, 36, 107: // AFSDB RT KX LP
		return form{2, 1, 0}, true
	case 26: // PX
		return form{2, 2, 0}, true
	case wire.TypeSRV:
		return form{6, 1, 0}, true
	case typeSVCB, typeHTTPS:
		return form{2, 1, -1}, true
	case 35: // NAPTR: three strings before the name
		lead := 4
		for range 3 {
			if lead < len(rdata) {
				lead += 1 + int(rdata[lead])
			}
		}
		return form{lead, 1, 0}, true
	}
	return form{}, false
}

// CheckNames is an error if the names in RDATA of a type, uncompressed, do not stand where they have to, or if what
// stands behind them is not as long as the type wants it.
func CheckNames(typ uint16, rdata []byte) error {
	f, ok := formOf(typ, rdata)
	if !ok {
		return nil
	}
	rest := rdata[min(f.lead, len(rdata)):]
	for range f.names {
		n := wire.NameLen(rest)
		if n == 0 {
			return fmt.Errorf("data of type %s lacks a name", typeText(typ))
		}
		rest = rest[n:]
	}
	if f.tail >= 0 && len(rest) != f.tail {
		return fmt.Errorf("data of type %s has %d octets behind its names, not %d", typeText(typ), len(rest), f.tail)
	}
	return nil
}

// leastOf is how many octets data of a type have at least, where a digest or the like must not be empty: other servers
// read no such record.
func leastOf(typ uint16) int {
	switch typ {
	case typeDS, 59: // CDS
		return 5
	case 44: // SSHFP
		return 3
	case 52, 53: // TLSA SMIMEA
		return 4
	}
	return 0
}

// CheckForm is CheckNames for data that were read from a message, where they had size octets: of types without names in
// their data they must be as many as before.
func CheckForm(typ uint16, rdata []byte, size int) error {
	if len(rdata) < leastOf(typ) {
		return fmt.Errorf("data of type %s end too early", typeText(typ))
	}
	if _, ok := formOf(typ, rdata); ok {
		return CheckNames(typ, rdata)
	}
	if len(rdata) != size && typ != typeISDN {
		return fmt.Errorf("data of type %s has %d octets, not %d", typeText(typ), size, len(rdata))
	}
	return nil
}

// Whole is an error if the data of r, which rr was read from, end too early. What the reader took for zeros then
// would be served, and written to files, as something else.
func (r Record) Whole(rr dns.RR) error {
	early := false
	switch rr := rr.(type) {
	case *dns.RRSIG:
		early = rr.SignerName == "" // behind which there may be anything
	case *dns.NSEC3:
		early = rr.NextDomain == ""
	}
	if early {
		return fmt.Errorf("data of type %s end too early", typeText(r.Type))
	}
	switch _, ok := formOf(r.Type, r.RData); {
	case ok:
		return CheckNames(r.Type, r.RData)
	case r.Type == wire.TypeRRSIG, r.Type == wire.TypeTXT, r.Type == typeISDN: // strings have their length with them
		return nil
	}
	return packed(rr, func(read Record) error {
		if len(read.RData) > len(r.RData) {
			return fmt.Errorf("data of type %s end too early", typeText(r.Type))
		}
		return nil
	})
}
