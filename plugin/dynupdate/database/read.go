package database

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// Contents is what a database holds.
type Contents struct {
	Version *zone.Zone    // growing
	Deltas  []*zone.Delta // the last ones that led to it
}

// read reads an open database. torn is how many octets at its end do not count, as a commit was not completed.
func read(path string, m Medium, size int64, origin []byte, keep int) (f *File, c Contents, torn int64, err error) {
	f = &File{path: path, origin: origin, medium: m}
	r := reading{File: f, keep: keep}
	var buf []byte
	for {
		fr, err := readFrame(m, f.size, size, buf)
		switch {
		case errors.Is(err, io.EOF):
			c, err = r.end()
			return f, c, 0, err
		case errors.Is(err, errDamaged):
			if r.change == nil || intactBehind(m, f.size, size) {
				return nil, c, 0, r.damaged(err)
			}
			c, err = r.end()
			return f, c, size - f.size, err
		case err != nil:
			return nil, c, 0, fmt.Errorf("database %q: %w", path, err)
		}
		if err := r.take(fr); err != nil {
			return nil, c, 0, r.damaged(err)
		}
		f.size += fr.size
		if buf = fr.body; r.change == nil {
			f.snapshot = f.size
		}
	}
}

// reading is the way through the frames of a database.
type reading struct {
	*File
	keep    int // transactions to remember
	begun   bool
	builder *zone.Builder
	records uint32
	change  *zone.Change // from the end of the snapshot on
	serial  uint32       // that the transactions lead to
	deltas  []*zone.Delta
	count   int // transactions
}

// OtherZoneError is the error of a database of another zone.
type OtherZoneError struct{ Path, Zone string }

func (e *OtherZoneError) Error() string {
	return fmt.Sprintf("database %q belongs to zone %q", e.Path, e.Zone)
}

// damaged is the error of what stands where reading is.
func (r *reading) damaged(err error) error {
	var other *OtherZoneError
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
		return &OtherZoneError{r.path, wire.Text(name)}
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
func (r *reading) end() (c Contents, err error) {
	if r.change == nil {
		return c, r.damaged(io.ErrUnexpectedEOF)
	}
	if c.Version, _, err = r.change.Zone(); err != nil {
		return c, r.damaged(err)
	}
	c.Deltas = r.deltas
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
