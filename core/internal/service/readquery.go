package service

import (
	"io"
	"slices"
)

// firstRead is the memory for a query whose octets are still to come: most have fewer.
const firstRead = 512

// ReadQuery reads a query of n octets, which did not come over UDP. Memory is made as they come: who only says that
// many will come does not have the process hold them. The error is ErrLong if that is too long, io.ErrUnexpectedEOF if
// fewer come, io.EOF if none do.
func (l *Limits) ReadQuery(r io.Reader, n int) ([]byte, error) {
	if l.TooLong(n) {
		return nil, ErrLong
	}
	b := make([]byte, 0, min(n, firstRead))
	for len(b) < n {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(n-len(b), 2*len(b)))
		}
		got, err := io.ReadFull(r, b[len(b):min(cap(b), n)])
		if b = b[:len(b)+got]; err == io.EOF && len(b) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}
