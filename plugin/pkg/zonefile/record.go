package zonefile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var (
	errNoOwner = errors.New("no owner: the first record needs one")
	errNoTTL   = errors.New("missing TTL with no previous value: the record needs one, or $TTL before it")
	errNoData  = errors.New("no data")
	errNoType  = errors.New("no type: must be [OWNER] [TTL] [CLASS] TYPE DATA")
)

// read reads the words of one record: [owner] [TTL] [class] type RDATA, with TTL and class
// in either order.
func (p *Parser) read(words []word, blank bool) error {
	r := &p.record
	if !blank {
		owner, err := appendName(p.owner[:0], words[0].text, p.top().origin)
		if err != nil {
			p.owner = nil
			return fmt.Errorf("bad owner name %q: %w", words[0].text, err)
		}
		p.owner = owner
		words = words[1:]
	}
	if len(p.owner) == 0 {
		return errNoOwner
	}
	r.Owner, r.Class = p.owner, dns.ClassINET
	hasTTL, hasClass := false, false
	// The type is the first word that can be neither: a TTL begins with a digit, and no type or class does.
	for ; len(words) > 0; words = words[1:] {
		text := words[0].text
		if !hasClass {
			if c, ok := parseClass(text); ok {
				r.Class, hasClass = c, true
				continue
			}
		}
		if !hasTTL && len(text) > 0 && digit(text[0]) {
			ttl, ok := parseTTL(text)
			if !ok {
				return badTTL(text)
			}
			r.TTL, hasTTL = ttl, true
			continue
		}
		break
	}
	if len(words) == 0 {
		return errNoType
	}
	var ok bool
	if r.Type, ok = parseType(words[0].text); !ok {
		return unknownType(words[0].text)
	}
	if err := p.rdata(words[1:]); err != nil {
		return fmt.Errorf("%s %s: %w", wire.Text(r.Owner), words[0].text, err)
	}
	return p.setTTL(hasTTL)
}

// badTTL is the error for text that is no TTL, and unknownType for one that is no type.
func badTTL(text []byte) error {
	return fmt.Errorf("not a TTL: %q: must be seconds, or numbers with the units w, d, h, m and s, up to %d seconds", text, uint32(math.MaxUint32))
}

func unknownType(text []byte) error {
	return fmt.Errorf("unknown type %q: must be a type's name, or TYPE and its number", text)
}

// setTTL gives the record the TTL that it has not itself: that of $TTL, or of the record before it. A SOA record
// that has neither counts for no time, as CoreDNS 1.14.7 reads it, and so do those behind it.
func (p *Parser) setTTL(own bool) error {
	r := &p.record
	if own {
		r.TTL = counted(r.TTL)
		// Without $TTL, the TTL of a record is that of those behind it, too (RFC 1035 §5.1).
		if !p.fixTTL {
			p.ttl, p.hasTTL = r.TTL, true
		}
		return nil
	}
	if !p.hasTTL {
		if r.Type != dns.TypeSOA {
			return errNoTTL
		}
		p.ttl, p.hasTTL = 0, true
	}
	r.TTL = p.ttl
	return nil
}

// counted is a TTL as it counts: one with the first bit set is 0 (RFC 2181 §8).
func counted(ttl uint32) uint32 {
	if ttl > math.MaxInt32 {
		return 0
	}
	return ttl
}

// rdata reads the words of the RDATA. Types that zones are full of are read here, all
// others by github.com/miekg/dns.
func (p *Parser) rdata(words []word) (err error) {
	r := &p.record
	b := r.RData[:0]
	origin := p.top().origin
	if len(words) > 0 && !words[0].quoted && string(words[0].text) == `\#` {
		// RFC 3597 §5 lets known types be written so, too; then the data must be of their form.
		if r.RData, err = appendGeneric(b, words[1:]); err != nil {
			return err
		}
		return p.checkData(r.RData)
	}
	f, known := formats[r.Type]
	switch {
	case r.Type == dns.TypeAMTRELAY:
		b, err = appendRelay(b, words, origin)
	case r.Type == dns.TypeNXT:
		b, err = appendNXT(b, words, origin)
	case r.Type == typeWALLET || r.Type == typeCLA:
		b, err = appendStrings(b, words)
	case r.Type == dns.TypeISDN && len(words) == 1: // without a subaddress, which miekg/dns would make an empty one
		b, err = appendOneString(b, words[0])
	case slices.ContainsFunc(words, word.hasQuote):
		b, err = p.other(b, words) // which parts it there, as in key="a b", or not, as the type wants it
	case r.Type == dns.TypeA || r.Type == dns.TypeAAAA:
		b, err = appendAddr(b, r.Type, words)
	case r.Type == dns.TypeTXT || r.Type == dns.TypeSPF:
		b, err = appendStrings(b, words)
	case !known:
		b, err = p.other(b, words)
	default:
		// There are more ways to write some of these types: miekg/dns has the last word.
		if b, err = appendFields(b, &f, words, origin); err != nil && !f.plain {
			b, err = p.other(r.RData[:0], words)
		}
		if err != nil && r.Type == dns.TypeSOA {
			err = fmt.Errorf("bad SOA zone parameter: %w", err)
		}
	}
	if err == nil && len(b) > math.MaxUint16 {
		err = errors.New("data is longer than 65535 octets")
	}
	r.RData = b
	return err
}

// checkData is an error if data is not of the form that the record's type has, if that is a known one.
func (p *Parser) checkData(data []byte) error {
	r := &p.record
	head := []byte{0, byte(r.Type >> 8), byte(r.Type), byte(r.Class >> 8), byte(r.Class), 0, 0, 0, 0, byte(len(data) >> 8), byte(len(data))}
	rr, _, err := dns.UnpackRR(append(head, data...), 0)
	switch {
	case r.Type == dns.TypeAMTRELAY:
		return checkRelay(data)
	case r.Type == dns.TypeNXT && wire.Misread(r.Type, data):
		return nil
	case err == nil && len(data) == 0 && !wire.MayBeEmpty(r.Type):
		return errNoData
	case err == nil && len(data) > 0 && dns.Len(rr) < len(head):
		return errors.New("bad data")
	}
	return err
}

// other has one record read by miekg/dns, in the form in which it came.
func (p *Parser) other(b []byte, words []word) ([]byte, error) {
	if len(words) == 0 && p.record.Type != dns.TypeAPL { // which would be read as a record of an update
		return b, errNoData
	}
	if p.record.Type == dns.TypeLOC {
		words = inFull(words)
	}
	var text strings.Builder
	fmt.Fprintf(&text, ". 0 %s %s", dns.Class(p.record.Class), dns.Type(p.record.Type))
	for _, w := range words {
		text.WriteByte(' ')
		quoted := w.quoted && p.record.Type != dns.TypeGPOS // whose numbers miekg/dns reads as they are only
		if quoted {
			text.WriteByte('"')
		} else if p.record.Type == dns.TypeSVCB || p.record.Type == dns.TypeHTTPS {
			w.text = namedKey(w.text)
		}
		text.Write(w.text)
		if quoted {
			text.WriteByte('"')
		}
	}
	text.WriteByte('\n')
	zp := dns.NewZoneParser(strings.NewReader(text.String()), wire.Text(p.top().origin), "")
	rr, ok := zp.Next()
	if !ok {
		if err := zp.Err(); err != nil {
			var perr *dns.ParseError
			if errors.As(err, &perr) { // its line and column are of no use here
				message, _, _ := strings.Cut(strings.TrimPrefix(perr.Error(), "dns: "), " at line: ")
				return b, errors.New(message)
			}
			return b, err
		}
		return b, errNoData
	}
	buf := make([]byte, dns.Len(rr)+16)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return b, err
	}
	data := buf[11:n] // behind root owner, type, class, TTL and length
	return append(b, data...), p.checkData(data)
}

// namedKey is a parameter of a service with the name of its key, where that came as a number and the value is the same
// either way (RFC 9460 §2.1): miekg/dns takes numbers for keys only that it does not know.
func namedKey(param []byte) []byte {
	key, value, _ := bytes.Cut(param, []byte{'='})
	switch strings.ToLower(string(key)) {
	case "key7":
		return append([]byte("dohpath="), value...)
	case "key8":
		if len(value) == 0 { // it has none
			return []byte("ohttp")
		}
	}
	return param
}

// parseClass reads the mnemonic of a class, or CLASS and its number, in any case; parseType does so for a type.
func parseClass(text []byte) (uint16, bool) {
	if len(text) == 2 {
		switch string(bytes.ToUpper(text)) {
		case "IN":
			return dns.ClassINET, true
		case "CH":
			return dns.ClassCHAOS, true
		case "HS":
			return dns.ClassHESIOD, true
		case "CS":
			return dns.ClassCSNET, true
		}
		return 0, false
	}
	return parseNumbered(text, "CLASS")
}

func parseType(text []byte) (uint16, bool) {
	// Most files have capitals, for which nothing is allocated.
	if t, ok := types[string(text)]; ok {
		return t, true
	}
	if t, ok := types[strings.ToUpper(string(text))]; ok {
		return t, true
	}
	return parseNumbered(text, "TYPE")
}

// parseNumbered reads the form of RFC 3597 §5, such as TYPE65280.
func parseNumbered(text []byte, prefix string) (uint16, bool) {
	if len(text) <= len(prefix) || !strings.EqualFold(string(text[:len(prefix)]), prefix) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[len(prefix):]), 10, 16)
	return uint16(n), err == nil
}

// parseTTL reads a time in seconds, or in weeks, days, hours, minutes and seconds such as 1h30m.
func parseTTL(text []byte) (uint32, bool) {
	var total, n uint64
	digits := false
	for _, c := range text {
		unit := uint64(0)
		switch c | 0x20 {
		case 's':
			unit = 1
		case 'm':
			unit = 60
		case 'h':
			unit = 60 * 60
		case 'd':
			unit = 24 * 60 * 60
		case 'w':
			unit = 7 * 24 * 60 * 60
		default:
			if c < '0' || c > '9' {
				return 0, false
			}
			n = n*10 + uint64(c-'0')
			digits = true
			if n > math.MaxUint32 {
				return 0, false
			}
			continue
		}
		if !digits {
			return 0, false
		}
		if total += n * unit; total > math.MaxUint32 { // more of them could overflow it
			return 0, false
		}
		n, digits = 0, false
	}
	total += n
	return uint32(total), total <= math.MaxUint32 && len(text) > 0
}
