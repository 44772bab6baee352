package dynupdate

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

// medium is what a database needs of a file; tests have media that fail.
type medium interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// openMedium opens a file that is there, or makes one that only its owner reads. It is a variable for tests.
var openMedium = func(path string, create bool) (medium, error) { return openFile(path, create) }

func openFlags(create bool) int {
	if create {
		return os.O_RDWR | os.O_CREATE | os.O_TRUNC
	}
	return os.O_RDWR
}

// database is a zone on disk: a snapshot, and the transactions since. One goroutine at a time uses it.
type database struct {
	path   string
	origin []byte
	id     [16]byte
	file   medium
	unlock func()

	size     int64 // octets that count
	snapshot int64 // of these, octets up to the end of the snapshot
	broken   bool  // what stands behind size is not known
}

// contents is what a database holds.
type contents struct {
	version *zone.Zone // growing
	deltas  []*zone.Delta
}

// readDatabase reads an open database. torn is how many octets at its end do not count, as a commit was not completed.
func readDatabase(path string, f medium, size int64, origin []byte, keep int) (d *database, c contents, torn int64, err error) {
	d = &database{path: path, origin: origin, file: f}
	r := reading{database: d, keep: keep}
	var buf []byte
	for {
		fr, err := readFrame(f, d.size, size, buf)
		switch {
		case errors.Is(err, io.EOF):
			c, err = r.end()
			return d, c, 0, err
		case errors.Is(err, errDamaged):
			if r.change == nil || intactBehind(f, d.size, size) {
				return nil, c, 0, r.damaged(err)
			}
			c, err = r.end()
			return d, c, size - d.size, err
		case err != nil:
			return nil, c, 0, fmt.Errorf("database %q: %w", path, err)
		}
		if err := r.take(fr); err != nil {
			return nil, c, 0, r.damaged(err)
		}
		d.size += fr.size
		if buf = fr.body; r.change == nil {
			d.snapshot = d.size
		}
	}
}

// reading is the way through the frames of a database.
type reading struct {
	*database
	keep    int // transactions to remember
	begun   bool
	builder *zone.Builder
	records uint32
	change  *zone.Change // from the end of the snapshot on
	serial  uint32       // that the transactions lead to
	deltas  []*zone.Delta
	count   int // transactions
}

// errOtherZone is the error of a database of another zone.
type errOtherZone struct{ path, zone string }

func (e *errOtherZone) Error() string {
	return fmt.Sprintf("database %q belongs to zone %q", e.path, e.zone)
}

// damaged is the error of what stands where reading is.
func (r *reading) damaged(err error) error {
	var other *errOtherZone
	switch {
	case errors.As(err, &other):
		return err
	case !r.begun:
		return fmt.Errorf("database %q is not one of dynupdate", r.path)
	case r.change == nil:
		return fmt.Errorf("database %q: the snapshot is damaged at offset %d: %w", r.path, r.size, err)
	}
	return fmt.Errorf("database %q: transaction %d is damaged at offset %d: %w", r.path, r.count+1, r.size, err)
}

// take takes the next frame.
func (r *reading) take(f frame) error {
	switch {
	case !r.begun:
		return r.zone(f)
	case f.kind == kindHistory && r.builder == nil:
		return transactions(f.body, r.origin, r.remember)
	case f.kind == kindSnapshot && r.change == nil:
		return r.snapshotPart(f.body)
	case f.kind == kindEnd && r.change == nil && r.builder != nil && len(f.body) == 4:
		return r.snapshotEnd(binary.BigEndian.Uint32(f.body))
	case f.kind == kindCommit && r.change != nil:
		return transactions(f.body, r.origin, r.apply)
	}
	return fmt.Errorf("%w: a frame stands where none of its kind may stand", errDamaged)
}

func (r *reading) zone(f frame) error {
	if f.kind != kindZone || len(f.body) < 2+16+1 || wire.NameLen(f.body[18:]) != len(f.body)-18 {
		return errDamaged
	}
	if v := binary.BigEndian.Uint16(f.body); v != fileVersion {
		return fmt.Errorf("version %d of the format is not known", v)
	}
	copy(r.id[:], f.body[2:])
	if name := f.body[18:]; !bytes.Equal(name, r.origin) {
		return &errOtherZone{r.path, wire.Text(name)}
	}
	r.begun = true
	return nil
}

func (r *reading) snapshotPart(b []byte) error {
	if r.builder == nil {
		r.builder = zone.NewBuilder(r.origin, func(string, ...any) {})
		r.builder.AllowNSEC3()
		r.builder.KeepCase() // what transactions sign later is what was written
	}
	for len(b) > 0 {
		rec, rest, err := cutRecord(b)
		if err != nil {
			return err
		}
		if err := r.builder.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			return err
		}
		r.records++
		b = rest
	}
	return nil
}

func (r *reading) snapshotEnd(records uint32) error {
	if records != r.records {
		return fmt.Errorf("%w: %d records of %d", errDamaged, r.records, records)
	}
	v, err := r.builder.Build()
	if err == nil {
		v, err = v.Growing()
	}
	if err != nil {
		return err
	}
	if n := len(r.deltas); n > 0 && r.deltas[n-1].To != v.Serial() {
		return fmt.Errorf("%w: what led to the snapshot ends at serial %d, not %d", errDamaged, r.deltas[n-1].To, v.Serial())
	}
	r.change, r.serial = v.Change(), v.Serial()
	return nil
}

// remember keeps a delta for incremental transfers.
func (r *reading) remember(d *zone.Delta) error {
	if r.deltas = append(r.deltas, d); len(r.deltas) > 2*r.keep+16 {
		r.deltas = append([]*zone.Delta(nil), r.deltas[len(r.deltas)-r.keep:]...)
	}
	return nil
}

// apply makes the changes of a transaction, which must begin where the one before ended.
func (r *reading) apply(d *zone.Delta) error {
	if d.From != r.serial {
		return fmt.Errorf("%w: it begins at serial %d, the one before ended at %d", errDamaged, d.From, r.serial)
	}
	if err := r.change.Apply(d); err != nil {
		return err
	}
	r.serial = d.To
	r.count++
	return r.remember(d)
}

// end is what was read.
func (r *reading) end() (c contents, err error) {
	if r.change == nil {
		return c, r.damaged(io.ErrUnexpectedEOF)
	}
	if c.version, _, err = r.change.Zone(); err != nil {
		return c, r.damaged(err)
	}
	c.deltas = r.deltas
	return c, nil
}

// intactBehind reports whether there is a whole frame behind a damaged one: then that was not the last one, which a
// crash may have torn.
func intactBehind(f io.ReaderAt, at, size int64) bool {
	const window = 1 << 20
	buf := make([]byte, window+len(frameMagic))
	for at++; at < size; at += window {
		n, _ := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		for b, off := buf[:n], int64(0); ; {
			i := bytes.Index(b, []byte(frameMagic))
			if i < 0 {
				break
			}
			off += int64(i)
			if _, err := readFrame(f, at+off, size, nil); err == nil {
				return true
			}
			b, off = b[i+1:], off+1
		}
	}
	return false
}

// append writes a commit to stable storage. If that fails, it is as if nothing had been written, or broken says that
// this is not so.
func (d *database) append(frame []byte) error {
	_, err := d.file.WriteAt(frame, d.size)
	if err == nil {
		if err = d.file.Sync(); err == nil {
			d.size += int64(len(frame))
			return nil
		}
		// What a failed sync wrote is not known, and a later one may say nothing of it.
		d.broken = true
	}
	if cut := d.file.Truncate(d.size); cut != nil {
		d.broken = true
	}
	return fmt.Errorf("database %q: %w", d.path, err)
}

// sizes of what a snapshot is written in.
const snapshotFrame = 256 << 10

// writeSnapshot writes a database with one version of a zone to a new file beside path, and syncs it. history leads to
// the version.
func writeSnapshot(path string, id [16]byte, v *zone.Zone, history []*zone.Delta) (f medium, size int64, err error) {
	if f, err = openMedium(path, true); err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(path)
		}
	}()
	w := frameWriter{f: f}
	b := beginFrame(nil, kindZone)
	b = binary.BigEndian.AppendUint16(b, fileVersion)
	b = append(append(b, id[:]...), v.Origin()...)
	w.write(endFrame(b, 0))
	for _, d := range history {
		w.write(endFrame(appendTransaction(beginFrame(nil, kindHistory), d), 0))
	}
	records := uint32(0)
	b = beginFrame(b[:0], kindSnapshot)
	walk := v.Walk()
	for r, ok := walk.Next(); ok; r, ok = walk.Next() {
		if b = appendRecord(b, r); len(b) > snapshotFrame {
			w.write(endFrame(b, 0))
			b = beginFrame(b[:0], kindSnapshot)
		}
		records++
	}
	w.write(endFrame(b, 0))
	b = binary.BigEndian.AppendUint32(beginFrame(b[:0], kindEnd), records)
	w.write(endFrame(b, 0))
	if w.err == nil {
		w.err = f.Sync()
	}
	return f, w.at, w.err
}

type frameWriter struct {
	f   medium
	at  int64
	err error
}

func (w *frameWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.f.WriteAt(b, w.at)
	w.at += int64(len(b))
}

// replace makes a file that was written beside path the one at path, under its own lock, and gives up the one that was
// there. If the new name may not be on the disk, the database is broken: a crash could bring back the file before, without
// what is committed from now on.
func (d *database) replace(f medium, size int64, unlock func()) error {
	err := moveTo(besides(d.path), d.path)
	if err != nil && d.file != nil && keepsNames {
		// What is open may keep its name. It is broken until another one has that.
		d.file.Close()
		d.unlock()
		d.unlock, d.broken = func() {}, true
		err = moveTo(besides(d.path), d.path)
	}
	if err != nil {
		return err
	}
	if d.file != nil {
		d.file.Close()
		d.unlock()
	}
	err = syncFolder(d.path)
	d.file, d.size, d.snapshot, d.unlock, d.broken = f, size, size, unlock, err != nil
	return err
}

// moveTo has a file take the place of another one in its folder, and keepsNames says that a file that is open may keep
// its name. They are variables for tests.
var (
	moveTo     = rename
	keepsNames = runtime.GOOS == "windows"
)

// besides is where a database is written before it takes the place of the one at path.
func besides(path string) string { return path + ".new" }

// syncFolder makes a name durable. It is a variable for tests.
var syncFolder = zonefile.SyncFolder

// newID is a database's own name.
func newID() (id [16]byte) {
	rand.Read(id[:])
	return id
}
