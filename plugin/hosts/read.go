package hosts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/netip"
	"unsafe"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// builder makes a table out of lines. It makes next to no garbage: what it needs beside the table is some buffers.
type builder struct {
	inOrigins func(name []byte) bool
	noReverse bool
	pages     pager
	turns     eventloop.Turns
	name      [wire.MaxName + 1]byte // of the word that is read
}

// newBuilder is a builder for a table that may take the place of old, which may be nil: it shares the memory of what
// stands in both.
func newBuilder(inOrigins func([]byte) bool, noReverse bool, old *table) *builder {
	return &builder{inOrigins: inOrigins, noReverse: noReverse, pages: newPager(old)}
}

// lineBuffer is the octets of a line up to which it is read where it stands.
const lineBuffer = 64 << 10

// byteOrderMark is what some editors put before UTF-8 text. It would hide the address of the first line.
const byteOrderMark = "\uFEFF"

// read takes in all lines of r, of any length. A byte order mark before them is left out.
func (b *builder) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, lineBuffer)
	if start, _ := lines.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		lines.Discard(len(start)) // they are in the buffer
	}
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = nil
		}
		b.line(line)
		b.turns.Done()
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
	var addr netip.Addr
	first := true
	for word := range bytes.FieldsSeq(line) {
		if first {
			var ok bool
			if addr, ok = parseAddr(unsafe.String(unsafe.SliceData(word), len(word))); !ok { // nothing keeps the string
				return
			}
			first = false
			continue
		}
		if name, err := b.lower(word); err == nil && b.inOrigins(name) {
			b.pages.add(addr, name)
		}
	}
}

// lower is a word as a lower name in wire form, which holds until the next call.
func (b *builder) lower(word []byte) ([]byte, error) {
	for _, c := range word {
		if c == '\\' || c >= 0x80 {
			return wire.LowerName(plugin.Name(word).Normalize())
		}
	}
	name, err := wire.AppendName(b.name[:0], word)
	wire.Lower(name, name)
	return name, err
}

func (b *builder) build() (*table, error) {
	pages, err := b.pages.end()
	if err != nil {
		return nil, err
	}
	return newTable(pages, !b.noReverse), nil
}

// parseAddr reads an address, without its zone. One that is mapped into IPv6 is one of IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
