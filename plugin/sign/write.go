package sign

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

const signedMode = 0o644 // the file is for servers, which may be of other users

// write puts the signed file in the place of the one before, whole or not at all. Its time is that of the signing, so that a zone file that was changed
// meanwhile is newer.
func (s *Signer) write(z *zone.Zone, signed time.Time) error {
	return zonefile.Replace(filepath.Clean(s.signedFile()), "signed-", func(f *os.File) error {
		if err := writeZone(f, z); err != nil {
			return err
		}
		return f.Chmod(signedMode)
	}, func(name string) error { return os.Chtimes(name, signed, signed) })
}

// writeZone writes a zone as a master file, in canonical order, the SOA record and its signatures first.
func writeZone(to io.Writer, z *zone.Zone) error {
	w := bufio.NewWriterSize(to, 1<<16)
	for _, apex := range []bool{true, false} {
		walk := z.Walk()
		for rec, ok := walk.Next(); ok; rec, ok = walk.Next() {
			first := len(rec.Owner) == len(z.Origin()) && ofSOA(rec)
			if apex && len(rec.Owner) != len(z.Origin()) {
				break // behind the apex, which is the first in canonical order
			}
			if first != apex {
				continue
			}
			rr, err := rec.RR()
			if err != nil {
				return err
			}
			w.WriteString(rr.String())
			w.WriteByte('\n')
		}
	}
	return w.Flush()
}

// ofSOA reports whether a record of the apex is the SOA record or a signature of it.
func ofSOA(rec zone.Record) bool {
	return rec.Type == wire.TypeSOA || rec.Type == wire.TypeRRSIG && rec.RData[0] == 0 && rec.RData[1] == byte(dns.TypeSOA)
}
