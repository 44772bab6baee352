package conn

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"golang.org/x/sys/unix"
)

// lightLines speaks lines on connections without goroutines: "who" is answered at once, "much" with more than a socket
// takes, and what else there is needs a goroutine.
type lightLines struct{ of *lineServer }

func (h lightLines) handler() Handler { return Handler{New: h.of.New, Turn: h.turn, Resume: h.resume} }

func (h lightLines) turn(t *Turn, c *Light, b []byte) (n int, stays bool) {
	for n < len(b) {
		line, _, whole := bytes.Cut(b[n:], []byte("\n"))
		switch {
		case whole && string(line) == "who":
			t.Add(nil, fmt.Appendf(nil, "%s %s\n", t.Service.Label, c.Peer.Client.Addr()))
		case whole && string(line) == "much":
			t.Add(bytes.Repeat([]byte("x"), 16<<20), []byte("\n"))
		default:
			return n, false
		}
		c.Queries++
		n += len(line) + 1
	}
	return n, true
}

func (h lightLines) resume(c *Conn, _ *Light) Protocol { return h.of.New(c) }

// serveLightLines serves lines, without goroutines if that can be.
func serveLightLines(t *testing.T, change func(*service.Service)) (l *Listener, addr string, of *lineServer) {
	t.Helper()
	s, of := lineService(t), newLineServer()
	s.Wire = true
	if change != nil {
		change(s)
	}
	from := coretest.ListenTCP(t)
	l = NewListener(s, ClientAuth{})
	l.ListenOn(from)
	coretest.Serving(t, l, func() error { return l.Serve(from, lightLines{of}.handler()) })
	return l, from.Addr().String(), of
}

// each calls f for all connections that have no goroutine.
func (l *Listener) each(f func(c *Light)) {
	l.readers.mu.Lock()
	defer l.readers.mu.Unlock()
	for _, r := range l.readers.all {
		r.mu.Lock()
		for _, q := range []*queue{&r.silent, &r.asked} {
			for c := q.first; c != nil; c = c.next {
				f(c)
			}
		}
		r.mu.Unlock()
	}
}

func (l *Listener) lights() (n int) {
	l.each(func(*Light) { n++ })
	return n
}

func (l *Listener) heavies() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Many connections are spread over readers, which are no more than processors; small replies leave at once.
func TestReadersShare(t *testing.T) {
	l, addr, _ := serveLightLines(t, nil)
	const n = 64
	first := coretest.Dial(t, addr) // it may have come before the listener was asked to be quick
	told(t, first, "who")
	first.Close()
	eventually.Holds(t, "the first has left", func() bool { return l.lights() == 0 })
	for range n {
		if c := coretest.Dial(t, addr); told(t, c, "who") != "127.0.0.1" {
			t.Error("no answer")
		}
	}
	eventually.Holds(t, "none has a goroutine", func() bool { return l.lights() == n })
	l.each(func(c *Light) {
		if v, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); v == 0 || err != nil {
			t.Errorf("small replies wait: %d, %v", v, err)
		}
	})
	l.readers.mu.Lock()
	defer l.readers.mu.Unlock()
	if got, want := len(l.readers.all), min(runtime.GOMAXPROCS(0), n/enoughFor); got != want {
		t.Errorf("%d readers, want %d", got, want)
	}
	for i, r := range l.readers.all {
		if got, fair := int(r.n.Load()), n/len(l.readers.all); got < fair-enoughFor || got > fair+enoughFor {
			t.Errorf("reader %d has %d connections, want about %d", i, got, fair)
		}
	}
}

// A client that does not take its reply at once gets it whole, from a goroutine, and is served on.
func TestLightWaitsForNone(t *testing.T) {
	l, addr, _ := serveLightLines(t, nil)
	slow, other := coretest.Dial(t, addr), coretest.Dial(t, addr)
	fmt.Fprintln(slow, "who")
	fmt.Fprintln(slow, "much")
	eventually.Holds(t, "the slow one has a goroutine", func() bool { return l.heavies() == 1 })
	if got := told(t, other, "who"); got != "127.0.0.1" {
		t.Errorf("another client: %s", got)
	}
	fmt.Fprintln(slow, "who")
	first := l.Now().Label + " 127.0.0.1\n"
	want := len(first) + 16<<20 + 1 + len(first)
	got := make([]byte, want)
	if n, err := io.ReadFull(slow, got); err != nil || string(got[want-len(first):]) != first {
		t.Errorf("%d of %d octets, %v; they end with %q", n, want, err, got[max(0, n-30):n])
	}
}

// Where there is no descriptor for a connection it waits until there is one, and the log tells why.
func TestNoDescriptors(t *testing.T) {
	out := logtest.Capture(t)
	l, addr, _ := serveLightLines(t, nil)
	if got := told(t, coretest.Dial(t, addr), "who"); got != "127.0.0.1" {
		t.Fatal(got)
	}
	eventually.Holds(t, "one is served", func() bool { return l.lights() == 1 })
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	restore := sync.OnceFunc(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	defer restore()
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	open, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, open)
	few := limit
	few.Cur = uint64(open.Fd()) + 10 // there may be some free ones below it
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Skipf("descriptors cannot be limited here: %v", err)
	}
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		if files = append(files, f); len(files) > 10000 {
			t.Fatal("there are as many descriptors as one wants")
		}
	}
	files[0].Close() // which the client takes
	files = files[1:]
	c := coretest.Dial(t, addr)
	fmt.Fprintln(c, "who")
	begun := time.Now()
	time.Sleep(10 * acceptErrorPause)
	if n := l.lights() + l.heavies(); n != 1 {
		t.Errorf("%d connections are served", n)
	}
	restore()
	if got := next(c); got != "127.0.0.1" {
		t.Errorf("after %v: %s", time.Since(begun), got)
	}
	want := "[WARNING] Connections to " + l.Now().Label + " wait until they can be accepted: accept4: too many open files\n"
	if got := out.String(); got != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// elsewhere is a RawConn of which epoll knows nothing the first times.
type elsewhere struct {
	syscall.RawConn
	times int
}

func (e *elsewhere) Control(f func(uintptr)) error {
	if e.times--; e.times >= 0 {
		f(^uintptr(0))
		return nil
	}
	return e.RawConn.Control(f)
}

// Where the system cannot tell of new connections for a while, such as for want of memory, it does so after that.
func TestAcceptsLater(t *testing.T) {
	s := lineService(t)
	l := NewListener(s, ClientAuth{})
	from := coretest.ListenTCP(t)
	raw, err := from.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	a := &acceptor{listener: l, raw: &elsewhere{raw, 3}, reader: l.readers.first(l)}
	defer l.Stop(t.Context())
	a.resume()
	watched := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.watched
	}
	if watched() {
		t.Fatal("watched at once")
	}
	eventually.Holds(t, "new connections are told of", watched)
	a.end()
}

// One that has to give way does so whatever it has become meanwhile.
func TestLightGivesWay(t *testing.T) {
	l, addr, of := serveLightLines(t, func(s *service.Service) { s.Connections = 1 })
	for _, what := range []string{"nothing", "who", "slow"} {
		c := coretest.Dial(t, addr)
		switch what {
		case "who":
			told(t, c, what)
		case "slow":
			fmt.Fprintln(c, what)
			<-of.begun
			close(of.slow)
			next(c)
		}
		other := coretest.Dial(t, addr) // waits until the first has been idle for so long
		if got := told(t, other, "who"); got != "127.0.0.1" {
			t.Errorf("after %s: %s", what, got)
		}
		if !closed(c) {
			t.Errorf("%s is not closed", what)
		}
		other.Close()
		eventually.Holds(t, "none is left", func() bool { return l.lights()+l.heavies() == 0 })
	}
	if n := coretest.Limited(l.Now(), "connections"); n != 3 {
		t.Errorf("%d counted", n)
	}
}

// One that has a query at work does not give way, also if it had no goroutine before.
func TestLightAtWorkStays(t *testing.T) {
	l, addr, of := serveLightLines(t, func(s *service.Service) { s.Connections = 1 })
	c := coretest.Dial(t, addr)
	told(t, c, "who")
	var light *Light
	eventually.Holds(t, "it has no goroutine", func() bool { l.each(func(c *Light) { light = c }); return light != nil })
	fmt.Fprintln(c, "slow")
	<-of.begun
	other := coretest.Dial(t, addr)
	time.Sleep(2 * idleTime)
	close(of.slow)
	if got := next(c); got != "slow" {
		t.Errorf("it gave way: %s", got)
	}
	if got := told(t, other, "who"); got != "127.0.0.1" {
		t.Errorf("the other: %s", got)
	}
	if !closed(c) {
		t.Error("it does not give way when its query is answered")
	}
	other.Close()

	// Who was about to have it give way when it became a Conn has that closed.
	eventually.Holds(t, "none is left", func() bool { return l.lights()+l.heavies() == 0 })
	c, light = coretest.Dial(t, addr), nil
	eventually.Holds(t, "it has no goroutine", func() bool { l.each(func(c *Light) { light = c }); return light != nil })
	fmt.Fprint(c, "wh")
	eventually.Holds(t, "it has a goroutine", func() bool { return l.heavies() == 1 })
	light.Evict(true)
	if !closed(c) {
		t.Error("it is not closed")
	}
}

// A reader forgets the listener that the next server has another descriptor of.
func TestReaderForgetsListener(t *testing.T) {
	l, addr, of := serveLightLines(t, nil)
	told(t, coretest.Dial(t, addr), "who")
	again := coretest.Again(t, l.listener)
	l.ListenOn(again)
	go l.Serve(again, lightLines{of}.handler())
	told(t, coretest.Dial(t, addr), "who")
	eventually.Holds(t, "two connections wait", func() bool { return l.lights() == 2 })
	n := 0
	for _, r := range l.readers.all {
		n += r.set.Len()
	}
	if n != 3 {
		t.Errorf("readers wait for %d descriptors, want those of two connections and of one listener", n)
	}
}

// Connections come, ask, are silent, get goroutines, and go, all at once, and in the end all places are free.
func TestLightChurn(t *testing.T) {
	l, addr, of := serveLightLines(t, func(s *service.Service) { s.Idle, s.Read = 20*time.Millisecond, 20*time.Millisecond })
	close(of.slow)
	go func() {
		for range of.begun {
		}
	}()
	defer close(of.begun)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 100 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(10 * time.Second))
				switch (i + k) % 5 {
				case 0: // it is closed for being silent
					io.ReadAll(c)
				case 1:
					fmt.Fprint(c, "who\nwho\n")
					io.ReadAll(c) // it is closed for being idle
				case 2:
					fmt.Fprint(c, "who\nslow\nwho\n")
					io.ReadFull(c, make([]byte, 40))
				case 3:
					fmt.Fprint(c, "wh")
				case 4:
					fmt.Fprintln(c, "who")
				}
				c.Close()
			}
		})
	}
	wg.Wait()
	eventually.Holds(t, "all have left", func() bool {
		l.admission.mu.Lock()
		defer l.admission.mu.Unlock()
		return l.admission.n == 0
	})
	if n := l.lights() + l.heavies(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
