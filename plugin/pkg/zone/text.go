package zone

import (
	"bufio"
	"io"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// WriteText writes the zone as a master file (RFC 1035 §5), a record a line: the SOA record and its signatures first,
// all others in canonical order of their owners (RFC 4034 §6.1) and by type at each of them.
func (z *Zone) WriteText(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	for _, head := range [...]bool{true, false} {
		walk := z.Walk()
		for rec, ok := walk.Next(); ok; rec, ok = walk.Next() {
			if head && len(rec.Owner) != len(z.origin) {
				break // behind the apex, which is the first in canonical order
			}
			if head != (len(rec.Owner) == len(z.origin) && rec.isOfSOA()) {
				continue
			}
			line, err := rec.Text()
			if err != nil {
				return err
			}
			w.WriteString(line)
			if err := w.WriteByte('\n'); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// isOfSOA reports whether a record of the apex is the SOA record or a signature of it.
func (r Record) isOfSOA() bool {
	return r.Type == wire.TypeSOA || r.Type == wire.TypeRRSIG && r.RData[0] == 0 && r.RData[1] == wire.TypeSOA
}
