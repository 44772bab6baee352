package secondary

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

// A zone is stored as a master file that other programs can read, too. Its time is when a primary last confirmed it: until
// the SOA record's expire time after that it is served, also after a restart.

// path is the file of a zone, "" if nothing is stored.
func (r *replica) path() string {
	if r.source.storage == "" {
		return ""
	}
	return filepath.Join(r.source.storage, fileName(r.name()))
}

// longestName is how many octets the name of a file may have, so that there is room for ten digits behind a dot while it
// is being written.
const longestName = 255 - 1 - 10

// fileName is the name of the file of a zone. One that would be too long is cut, and has a sum of the whole.
func fileName(zone string) string {
	name := "db." + url.PathEscape(strings.TrimSuffix(zone, "."))
	if len(name) <= longestName {
		return name
	}
	sum := fmt.Sprintf("~%x", sha256.Sum256([]byte(zone)))
	return name[:longestName-len(sum)] + sum
}

// recall serves what there was before the reload, or else what is stored.
func (r *replica) recall() {
	r.inherit()
	r.load()
}

// load serves what is stored, if it is not too old. It looks once.
func (r *replica) load() {
	path := r.path()
	if path == "" || r.looked || r.zone.Current() != nil {
		return
	}
	r.looked = true
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	stored := file.NewZone(r.name(), path)
	stored.NSEC3, stored.ZONEMD, stored.KeepCase = true, r.source.zonemd, true
	if err == nil {
		err = stored.Load()
	}
	if err != nil {
		slog.Warningf("Zone %s: what is stored is of no use: %v", r.name(), err)
		return
	}
	if err := r.serve(stored.Current(), info.ModTime()); err != nil {
		slog.Warningf("Zone %s: what is stored is of no use: %v", r.name(), err)
		return
	}
	r.expire(time.Now(), time.Now())
	slog.Infof("Loaded: %s from %s", r.name(), path)
}

// keep stores the zone if it is another one than is stored, or else notes that it is still right.
func (r *replica) keep(changed bool) {
	path := r.path()
	if path == "" || r.gone.Load() {
		return
	}
	now := time.Now()
	if !changed && os.Chtimes(path, time.Time{}, now) == nil {
		return
	}
	if err := store(path, r.zone.Current()); err != nil {
		slog.Warningf("Zone %s is not stored: %v", r.name(), err)
	}
	if r.gone.Load() { // meanwhile
		r.forget()
	}
}

// forget removes what is stored.
func (r *replica) forget() {
	if path := r.path(); path != "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			slog.Warningf("Zone %s: %v", r.name(), err)
		}
	}
}

// store writes a zone to a file, all of it or nothing.
func store(path string, v *zone.Zone) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return zonefile.Replace(path, filepath.Base(path)+".*", func(f *os.File) error { return v.WriteText(f) }, nil)
}
