package sign

import (
	"os"
	"path/filepath"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

const signedMode = 0o644 // the file is for servers, which may be of other users

// unfinished is the names of files that are being written, which nobody else's files have.
const unfinished = ".signed-*.new"

// write puts the signed file in the place of the one before, whole or not at all. Its time is that of the signing, so that a zone file that was changed
// meanwhile is newer.
func (s *Signer) write(z *zone.Zone, signed time.Time) error {
	return zonefile.Replace(filepath.Clean(s.signedFile()), unfinished, func(f *os.File) error {
		if err := z.WriteText(f); err != nil {
			return err
		}
		return f.Chmod(signedMode)
	}, func(name string) error { return os.Chtimes(name, signed, signed) })
}
