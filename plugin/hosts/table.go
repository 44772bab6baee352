package hosts

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"iter"
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// table is the names and addresses of one source. It never changes; the nil table is empty.
type table struct {
	forward *zone.Zone // addresses by name, as A and AAAA records
	arena   []byte     // names
	reverse []link     // sorted by address; names of one address in the order of the source
	entries int        // addresses by name, names by address
}

// link is one name of one address.
type link struct {
	addr netip.Addr
	name uint32 // place in arena
}

// builder makes a table.
type builder struct {
	*zone.Builder
	inOrigins func(name []byte) bool
	noReverse bool
	t         table
}

func newBuilder(inOrigins func([]byte) bool, noReverse bool) *builder {
	return &builder{Builder: zone.NewBuilder(wire.Root, func(string, ...any) {}), inOrigins: inOrigins, noReverse: noReverse}
}

// read takes in all lines of r, of any length.
func (b *builder) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		b.line(line)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line takes in one line: an address and its names. What is of another form is left out.
func (b *builder) line(line []byte) {
	line, _, _ = bytes.Cut(line, []byte("#"))
	words := bytes.Fields(line)
	if len(words) < 2 {
		return
	}
	addr, ok := parseAddr(string(words[0]))
	if !ok {
		return
	}
	for _, word := range words[1:] {
		name, err := wire.LowerName(plugin.Name(word).Normalize())
		if err != nil || !b.inOrigins(name) {
			continue
		}
		b.add(addr, name)
	}
}

func (b *builder) add(addr netip.Addr, name []byte) {
	typ := uint16(wire.TypeA)
	if addr.Is6() {
		typ = wire.TypeAAAA
	}
	if b.Builder.Add(name, typ, 0, addr.AsSlice()) != nil {
		return
	}
	if b.noReverse || string(wire.FirstLabel(name)) == "*" {
		return
	}
	b.t.reverse = append(b.t.reverse, link{addr, uint32(len(b.t.arena))})
	b.t.arena = append(b.t.arena, name...)
}

func (b *builder) build() (*table, error) {
	var err error
	if b.t.forward, err = b.BuildTable(); err != nil {
		return nil, err
	}
	b.t.reverse = slices.Clip(b.t.onceEach(b.t.reverse))
	b.t.arena = slices.Clip(b.t.arena)
	b.t.entries = b.t.forward.Records() + len(b.t.reverse)
	return &b.t, nil
}

// onceEach is links sorted by address, those of one address in the order of the source, and of equal ones the first.
func (t *table) onceEach(links []link) []link {
	slices.SortFunc(links, func(x, y link) int { // names stand in the arena in the order of the source
		return cmp.Or(x.addr.Compare(y.addr), bytes.Compare(t.name(x), t.name(y)), cmp.Compare(x.name, y.name))
	})
	links = slices.CompactFunc(links, func(x, y link) bool { return x.addr == y.addr && bytes.Equal(t.name(x), t.name(y)) })
	slices.SortFunc(links, func(x, y link) int { return cmp.Or(x.addr.Compare(y.addr), cmp.Compare(x.name, y.name)) })
	return links
}

// name is a link's name. It is only to be read.
func (t *table) name(l link) []byte {
	b := t.arena[l.name:]
	return b[:wire.NameLen(b)]
}

// find is the addresses of a name as records of a type, nil if there are none. A name that
// has none takes those of the wildcard that stands for its first label.
func (t *table) find(name []byte, hash uint64, typ uint16) zone.RRset {
	if t == nil {
		return nil
	}
	if n, ok := t.forward.Lookup(name, hash); ok {
		if set := n.Set(typ); set != nil {
			return set
		}
	}
	if len(name) == 1 {
		return nil
	}
	var buf [wire.MaxName + 1]byte
	star := append(append(buf[:0], 1, '*'), wire.Parent(name)...)
	if len(star) > wire.MaxName {
		return nil
	}
	n, ok := t.forward.Lookup(star, wire.Hash(star))
	if !ok {
		return nil
	}
	return n.Set(typ)
}

// names is the names of an address. Each is only to be read.
func (t *table) names(addr netip.Addr) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if t == nil {
			return
		}
		i, _ := slices.BinarySearchFunc(t.reverse, addr, func(l link, a netip.Addr) int { return l.addr.Compare(a) })
		for ; i < len(t.reverse) && t.reverse[i].addr == addr; i++ {
			if !yield(t.name(t.reverse[i])) {
				return
			}
		}
	}
}

// has reports whether name is one of an address' names.
func (t *table) has(addr netip.Addr, name []byte) bool {
	for n := range t.names(addr) {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

// addrOf is the address of the first of records of A or AAAA.
func addrOf(r zone.Records) netip.Addr {
	a, _ := netip.AddrFromSlice(r.Data())
	return a
}

// parseAddr reads an address, without its zone. One that is mapped into IPv6 is one of IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
