package quicconn

import (
	"bytes"
	"io"
	"runtime/debug"
	"testing"
)

// Long queries whose ends do not come have a part of the memory; short ones are read whatever there is of them.
func TestIncoming(t *testing.T) {
	const room = 200 << 10
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(room * IncomingShare))
	read := func(n int) (*Incoming, error) {
		in := NewIncoming(bytes.NewReader(make([]byte, n)))
		got, err := io.ReadAll(in)
		if err == nil && len(got) != n {
			t.Errorf("%d octets of %d", len(got), n)
		}
		return in, err
	}
	var long []*Incoming
	for range 3 {
		in, err := read(60 << 10)
		if err != nil {
			t.Fatal(err)
		}
		long = append(long, in)
	}
	if in, err := read(60 << 10); err != ErrMany {
		t.Errorf("a fourth: %v", err)
	} else {
		in.Done()
	}
	for range 100 {
		if _, err := read(littleQuery); err != nil {
			t.Fatalf("a short one: %v", err)
		}
	}
	long[0].Done()
	if in, err := read(60 << 10); err != nil {
		t.Errorf("when one is over: %v", err)
	} else {
		long[0] = in
	}
	for _, in := range long {
		in.Done()
		in.Done()
	}
	if n := incoming.Load(); n != 0 {
		t.Errorf("%d octets are left", n)
	}
}
