package mmsg

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"golang.org/x/sys/unix"
)

// pipes makes descriptors to read, each with one to write.
func pipes(t *testing.T, n int) (readers, writers []int) {
	t.Helper()
	for range n {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
		readers, writers = append(readers, p[0]), append(writers, p[1])
	}
	return readers, writers
}

func TestSet(t *testing.T) {
	s, err := NewSet[string]()
	if err != nil {
		t.Fatal(err)
	}
	readers, writers := pipes(t, 4)
	polled := func() []string {
		all := slices.Clone(s.Poll())
		slices.Sort(all)
		return all
	}
	var index [3]int32
	for i, name := range []string{"a", "b", "c"} {
		if index[i], err = s.Add(readers[i], name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddSilent(readers[3]); err != nil {
		t.Fatal(err)
	}
	if got := polled(); len(got) != 0 || s.Len() != 3 {
		t.Errorf("%d in the set; %q have something", s.Len(), got)
	}
	unix.Write(writers[0], []byte("x"))
	unix.Write(writers[2], []byte("x"))
	for range 2 { // until it is read
		if got := polled(); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("%q have something", got)
		}
	}
	s.Remove(index[2])
	if got := polled(); !slices.Equal(got, []string{"a"}) || s.Len() != 2 {
		t.Errorf("%d in the set; %q have something", s.Len(), got)
	}
	unix.Read(readers[0], make([]byte, 10))

	// A wait ends with what comes, also on what is silent, or with its deadline.
	looks := 0
	go func() { time.Sleep(20 * time.Millisecond); unix.Write(writers[1], []byte("x")) }()
	err = s.Wait(func(uintptr) bool { looks++; return slices.Equal(polled(), []string{"b"}) })
	if err != nil || looks < 2 {
		t.Errorf("%v after %d looks", err, looks)
	}
	unix.Read(readers[1], make([]byte, 10))
	go func() { time.Sleep(20 * time.Millisecond); unix.Write(writers[3], []byte("x")) }()
	if err = s.Wait(func(uintptr) bool {
		n, _ := unix.Read(readers[3], make([]byte, 10))
		return n > 0
	}); err != nil || len(polled()) != 0 {
		t.Errorf("%v; %q have something", err, polled())
	}
	s.SetDeadline(time.Now().Add(20 * time.Millisecond))
	if err := s.Wait(func(uintptr) bool { return false }); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	s.SetDeadline(time.Time{})

	go func() { time.Sleep(20 * time.Millisecond); s.Close() }()
	if err := s.Wait(func(uintptr) bool { return false }); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if _, err := s.Add(readers[2], "e"); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	s.Remove(index[0])
}

// What was found once, and is in the set no more, is not held on to: a connection would keep its server's whole
// configuration.
func TestPollHoldsNothing(t *testing.T) {
	s, err := NewSet[*[64]byte]()
	if err != nil {
		t.Fatal(err)
	}
	readers, writers := pipes(t, 8)
	var gone [8]weak.Pointer[[64]byte]
	for i := range readers {
		v := new([64]byte)
		gone[i] = weak.Make(v)
		index, err := s.Add(readers[i], v)
		if err != nil {
			t.Fatal(err)
		}
		unix.Write(writers[i], []byte("x"))
		if index != int32(i) {
			t.Fatalf("index %d", index)
		}
	}
	if got := len(s.Poll()); got != 8 {
		t.Fatalf("%d have something", got)
	}
	for i := range readers {
		unix.Read(readers[i], make([]byte, 1))
		s.Remove(int32(i))
	}
	s.Poll()
	runtime.GC()
	for i, w := range gone {
		if w.Value() != nil {
			t.Errorf("%d is held", i)
		}
	}
	s.Close() // it is in use until here
}

func TestSetClose(t *testing.T) {
	s, err := NewSet[string]()
	if err != nil {
		t.Fatal(err)
	}
	readers, _ := pipes(t, 3)
	first, _ := s.Add(readers[0], "a")
	s.Add(readers[1], "b")
	s.Remove(first)
	if index, err := s.Add(readers[2], "c"); index != first || err != nil {
		t.Errorf("got index %d, %v; %d was free", index, err, first)
	}
	if rest := s.Close(); !slices.Equal(rest, []string{"c", "b"}) {
		t.Errorf("%q were in the set", rest)
	}
}

// A set that is closed while somebody looks has nothing to tell.
func TestPollAfterClose(t *testing.T) {
	s, err := NewSet[string]()
	if err != nil {
		t.Fatal(err)
	}
	readers, writers := pipes(t, 1)
	if _, err := s.Add(readers[0], "a"); err != nil {
		t.Fatal(err)
	}
	unix.Write(writers[0], []byte("x"))
	looked := false
	s.Wait(func(uintptr) bool { // while it looks, the descriptor of the set stays open
		if got := s.Poll(); len(got) != 1 {
			t.Errorf("%q have something", got)
		}
		go s.Close() // which waits for the end of this look
		for closed := false; !closed; {
			s.mu.Lock()
			closed = s.closed
			s.mu.Unlock()
		}
		if got := s.Poll(); len(got) != 0 {
			t.Errorf("%q have something in a closed set", got)
		}
		looked = true
		return true
	})
	if !looked {
		t.Error("nobody looked")
	}
}
