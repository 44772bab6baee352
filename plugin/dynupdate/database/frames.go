package database

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
)

// A database is frames, one behind the other:
//
//	magic 4 | kind 1 | octets of the body 4 | CRC-32C of these 9 octets 4 | body | CRC-32C of the body 4
//
//	kind  body
//	'Z'   version 2 | UUID 16 | zone's name           the first frame
//	'H'   transactions that led to the snapshot        none or more, for incremental transfers
//	'S'   records                                      the snapshot, in parts
//	'E'   number of the snapshot's records 4           its end
//	'T'   transactions that were committed together    none or more
//
//	transaction: octets of it 4 | serial before 4 | serial after 4 | records removed 4 | records added 4 | records
//	record:      owner | type 2 | TTL 4 | octets of RDATA 2 | RDATA
//
// Numbers are big-endian, names and RDATA uncompressed wire form. Of what a commit appended, all or nothing counts, as
// one frame holds all of it. Where a frame begins after one that is damaged is found by its magic, and by its two sums.

const (
	frameMagic  = "\xd5UpF"
	frameHead   = 13
	frameSum    = 4
	fileVersion = 1
)

// Kinds of frames.
const (
	kindZone     = 'Z'
	kindHistory  = 'H'
	kindSnapshot = 'S'
	kindEnd      = 'E'
	kindCommit   = 'T'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginFrame appends the head of a frame, which endFrame completes.
func beginFrame(b []byte, kind byte) []byte {
	b = append(b, frameMagic...)
	b = append(b, kind)
	return append(b, make([]byte, 8)...)
}

// endFrame completes the frame that begins at start: its length and its sums.
func endFrame(b []byte, start int) []byte {
	head := b[start : start+frameHead]
	binary.BigEndian.PutUint32(head[5:], uint32(len(b)-start-frameHead))
	binary.BigEndian.PutUint32(head[9:], crc32.Checksum(head[:9], castagnoli))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start+frameHead:], castagnoli))
}

// errDamaged is the error of octets that are no frame.
var errDamaged = errors.New("damaged")

// frame is one that was read.
type frame struct {
	kind byte
	body []byte // holds until the next one
	size int64  // octets of all of it
}

// readFrame reads the frame at an offset of a file of some size. It is io.EOF at the end, errDamaged if there is no
// whole frame.
func readFrame(r io.ReaderAt, at, size int64, buf []byte) (f frame, err error) {
	if at == size {
		return f, io.EOF
	}
	var head [frameHead]byte
	if at+frameHead > size {
		return f, errDamaged
	}
	if _, err := r.ReadAt(head[:], at); err != nil {
		return f, err
	}
	n := int64(binary.BigEndian.Uint32(head[5:]))
	if string(head[:4]) != frameMagic || binary.BigEndian.Uint32(head[9:]) != crc32.Checksum(head[:9], castagnoli) {
		return f, errDamaged
	}
	f = frame{kind: head[4], size: frameHead + n + frameSum}
	if at+f.size > size {
		return f, errDamaged
	}
	if int64(cap(buf)) < n+frameSum {
		buf = make([]byte, n+frameSum)
	}
	buf = buf[:n+frameSum]
	if _, err := r.ReadAt(buf, at+frameHead); err != nil {
		return f, err
	}
	if binary.BigEndian.Uint32(buf[n:]) != crc32.Checksum(buf[:n], castagnoli) {
		return f, errDamaged
	}
	f.body = buf[:n]
	return f, nil
}

// appendRecord appends a record as frames have it.
func appendRecord(b []byte, r zone.Record) []byte {
	b = append(b, r.Owner...)
	b = binary.BigEndian.AppendUint16(b, r.Type)
	b = binary.BigEndian.AppendUint32(b, r.TTL)
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.RData)))
	return append(b, r.RData...)
}

// cutRecord is the first record of b, which it holds, and the rest.
func cutRecord(b []byte) (r zone.Record, rest []byte, err error) {
	n := wire.NameLen(b)
	if n == 0 || len(b) < n+8 {
		return r, nil, errDamaged
	}
	r = zone.Record{Owner: b[:n:n], Type: binary.BigEndian.Uint16(b[n:]), TTL: binary.BigEndian.Uint32(b[n+2:])}
	size := int(binary.BigEndian.Uint16(b[n+6:]))
	if b = b[n+8:]; len(b) < size {
		return r, nil, errDamaged
	}
	r.RData = b[:size:size]
	return r, b[size:], nil
}

// appendTransaction appends what changed from one version to the next.
func appendTransaction(b []byte, d *zone.Delta) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, n := range [...]uint32{d.From, d.To, uint32(d.Removed), uint32(d.Added)} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	w := d.Walk()
	for r, ok := w.Next(); ok; r, ok = w.Next() {
		b = appendRecord(b, r)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// transactions calls f with each transaction of a frame's body.
func transactions(body, origin []byte, f func(*zone.Delta) error) error {
	for len(body) > 0 {
		if len(body) < 20 || int(binary.BigEndian.Uint32(body)) > len(body)-4 {
			return errDamaged
		}
		end := 4 + int(binary.BigEndian.Uint32(body))
		head, b := body[4:20], body[20:end]
		counts := [2]uint32{binary.BigEndian.Uint32(head[8:]), binary.BigEndian.Uint32(head[12:])}
		var records [2][]zone.Record
		for i, n := range counts {
			for range n {
				r, rest, err := cutRecord(b)
				if err != nil {
					return err
				}
				records[i], b = append(records[i], r), rest
			}
		}
		d, err := zone.NewDelta(origin, records[0], records[1])
		switch {
		case err != nil:
			return err
		case len(b) > 0 || d.From != binary.BigEndian.Uint32(head) || d.To != binary.BigEndian.Uint32(head[4:]):
			return fmt.Errorf("%w: a transaction contradicts itself", errDamaged)
		}
		if err := f(d); err != nil {
			return err
		}
		body = body[end:]
	}
	return nil
}
