package secondary

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// A zone is stored as a master file that other programs can read, too. Its time is when a primary last confirmed it: until
// the SOA record's expire time after that it is served, also after a restart. A comment at its begin tells of the primaries.
//
// While one process takes the place of another one, both may store a zone. So what is stored is never replaced by an older
// version of the same primaries. A configuration that comes to nothing stores none. How a damaged file is told, is in sum.go.

// path is the file of a zone, "" if nothing is stored.
func (r *replica) path() string {
	if r.source.storage == "" {
		return ""
	}
	return filepath.Join(r.source.storage, fileName(r.name()))
}

// longestName is how many octets the name of a file has at most: less than file systems take, as files had a number
// behind it once, while they were being written.
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
	if r.folder().dooms(path) { // that is of another zone of the name
		return
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	head := readHead(path)
	stored := file.NewZone(r.name(), path)
	stored.NSEC3, stored.ZONEMD, stored.KeepCase = true, r.source.zonemd, true
	if err == nil {
		err = checkSum(path, head.summed)
	}
	if err == nil {
		err = stored.Load()
	}
	if err == nil {
		serve := r.serve
		if !r.source.noted(head.note) {
			serve = r.borrow
		}
		age := max(0, time.Since(info.ModTime())) // the clock may have been ahead
		err = serve(stored.Current(), r.rooms.now().Add(-age))
	}
	if err != nil {
		r.useless = true
		slog.Warningf("Zone %s: what is stored is of no use: %v", r.name(), err)
		return
	}
	r.note = head.note
	r.expire(r.rooms.now(), r.rooms.now())
	slog.Infof("Loaded: %s from %s", r.name(), path)
}

// tell logs that a zone cannot be stored, once for each cause, and that it can be again.
func (r *replica) tell(err error) {
	cause := ""
	if err != nil {
		cause = err.Error()
		var no syscall.Errno
		if errors.As(err, &no) {
			cause = no.Error() // names of unfinished files differ
		}
	}
	switch before := r.failing; {
	case cause == before:
	case err != nil:
		slog.Warningf("Zone %s is not stored: %v", r.name(), err)
	default:
		slog.Infof("Zone %s is stored again", r.name())
	}
	r.failing = cause
}

// Errors that end storing.
var (
	errOlder = errors.New("a newer version is stored") // by the other process
	errGone  = errors.New("the zone is kept no more")  // meanwhile; another replica may store one of its name
)

// store writes the zone to its file, all of it or nothing.
func (r *replica) store(s *storing) error {
	path, folder := r.path(), r.folder()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	v := r.zone.Current()
	write := func(f *os.File) error {
		return summed(f, func(w io.Writer) error {
			if _, err := fmt.Fprintf(w, "%s\n%s\n", r.source.note(), sumNote); err != nil {
				return err
			}
			return v.WriteText(w)
		})
	}
	unlock := func() {}
	err := zonefile.Replace(path, unfinished, write, func(written string) error {
		if err := os.Chtimes(written, time.Time{}, s.at); err != nil {
			return err
		}
		folder.filing.Lock() // first: each zone of this process has its turn, however many there are
		unlockDir, err := zonefile.LockFolder(filepath.Dir(path))
		if err != nil {
			folder.filing.Unlock()
			return err
		}
		unlock = func() {
			folder.filing.Unlock()
			unlockDir()
		}
		if r.gone.Load() {
			return errGone
		}
		if r.isInherited() { // while this waited
			return errInherited
		}
		var head head
		if !folder.dooms(path) {
			head = readHead(path)
		}
		if older := head.serial - v.Serial(); !s.useless && head.known && r.source.noted(head.note) && older != 0 && older < 1<<31 { // RFC 1982
			return errOlder
		}
		return nil
	})
	if err == nil {
		folder.took(r)
	}
	unlock()
	if errors.Is(err, errOlder) || errors.Is(err, errGone) {
		return nil // it is another one's now
	}
	return err
}

// unfinished is the names of files that are being written. No zone's file has one, nor anything that others put into
// the folder.
const unfinished = ".db.*.new"

// syncFolder makes durable that files of a folder are gone. It is a variable for tests.
var syncFolder = zonefile.SyncFolder

// head is the begin of a stored zone.
type head struct {
	note   string // "" if it has none
	summed bool   // its last line is a sum
	serial uint32
	known  bool // whether there is a serial
}

// readHead reads the begin of a file; what it does not have is not known.
func readHead(path string) (h head) {
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, noteBegin) {
			h.note = line
			continue
		}
		if line == sumNote {
			h.summed = true
			continue
		}
		rr, err := zonefile.Line(line)
		if soa, ok := rr.(*dns.SOA); err == nil && ok {
			h.serial, h.known = soa.Serial, true
		}
		return h
	}
	return h
}
