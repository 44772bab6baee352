package hosts

import (
	"bytes"
	"errors"
	"iter"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// entry is one name with one address, and what stands behind it in its page:
//
//	family 1 | name | address 4 or 16
type entry []byte

const (
	ipv4 = iota
	ipv6
)

// page is entries in the order of the source. It never changes, and tables share those that are equal: where a page ends
// is told by what stands in it, so that a line more or less changes a page or two, and no others.
type page struct {
	hash    uint64
	entries []byte
}

const (
	pageBits = 18
	pageSize = 1 << pageBits // octets at most
	pageLow  = pageSize / 4  // octets from which on an entry may end it
	pageOdds = 1 << 11       // one of so many entries does
	maxEntry = 1 + wire.MaxName + 16
)

// errTooBig is of a source with more names than a table holds, some ten millions.
var errTooBig = errors.New("hosts file is too large")

// pager makes pages.
type pager struct {
	old   map[uint64]page // that may be shared, by hash
	pages []page
	buf   []byte // the page that is filled
}

func newPager(old *table) pager {
	p := pager{}
	if old != nil {
		p.old = make(map[uint64]page, len(old.pages))
		for _, o := range old.pages {
			p.old[o.hash] = o
		}
	}
	return p
}

func (p *pager) add(addr netip.Addr, name []byte) {
	if p.buf == nil {
		p.buf = make([]byte, 0, pageSize)
	}
	at := len(p.buf)
	if addr.Is4() {
		a := addr.As4()
		p.buf = append(append(append(p.buf, ipv4), name...), a[:]...)
	} else {
		a := addr.As16()
		p.buf = append(append(append(p.buf, ipv6), name...), a[:]...)
	}
	if n := len(p.buf); n > pageSize-maxEntry || n > pageLow && wire.Hash(p.buf[at:])%pageOdds == 0 {
		p.close()
	}
}

// close ends the page that is filled.
func (p *pager) close() {
	full := page{hash: wire.Hash(p.buf)}
	if o, ok := p.old[full.hash]; ok && bytes.Equal(o.entries, p.buf) {
		full.entries = o.entries
	} else {
		full.entries = make([]byte, len(p.buf))
		copy(full.entries, p.buf)
	}
	p.pages = append(p.pages, full)
	p.buf = p.buf[:0]
}

// end is all pages.
func (p *pager) end() ([]page, error) {
	if len(p.buf) > 0 {
		p.close()
	}
	p.buf, p.old = nil, nil
	if len(p.pages) > 1<<(32-pageBits)-1 { // one is left free: places in an index begin at 1
		return nil, errTooBig
	}
	return p.pages, nil
}

func (e entry) is6() bool { return e[0] == ipv6 }

// name is the entry's name. It is only to be read.
func (e entry) name() []byte { return e[1 : 1+wire.NameLen(e[1:])] }

// named reports whether the entry is one of a name and a family.
func (e entry) named(name []byte, is6 bool) bool {
	return e.is6() == is6 && len(e) > len(name) && string(e[1:1+len(name)]) == string(name) // names end in the root
}

// addr is the entry's address.
func (e entry) addr() netip.Addr { return e.addrBehind(wire.NameLen(e[1:])) }

// addrBehind is the entry's address, which stands behind a name of n octets.
func (e entry) addrBehind(n int) netip.Addr {
	if e.is6() {
		return netip.AddrFrom16([16]byte(e[1+n:]))
	}
	return netip.AddrFrom4([4]byte(e[1+n:]))
}

// size is the octets that the entry itself takes.
func (e entry) size() int {
	n := 1 + wire.NameLen(e[1:]) + 4
	if e.is6() {
		n += 12
	}
	return n
}

// wild reports whether the name stands for others.
func (e entry) wild() bool { return e[1] == 1 && e[2] == '*' }

// all is the entries of pages with their places, in the order of the source.
func all(pages []page) iter.Seq2[uint32, entry] {
	return func(yield func(uint32, entry) bool) {
		for i, p := range pages {
			for at := 0; at < len(p.entries); {
				e := entry(p.entries[at:])
				if !yield(uint32(i)<<pageBits|uint32(at), e) {
					return
				}
				at += e.size()
			}
		}
	}
}
