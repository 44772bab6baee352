package dnstap

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"
)

// reader is a collector of frames: it takes connections, or makes one.
type reader struct {
	frames chan *tap.Dnstap
	close  func()
}

func (r *reader) read(conn net.Conn) {
	in, err := tap.NewReader(conn, &tap.ReaderOptions{Bidirectional: true, Timeout: 3 * time.Second})
	if err != nil {
		return
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := in.ReadFrame(buf)
		if err != nil {
			return
		}
		frame := new(tap.Dnstap)
		if proto.Unmarshal(buf[:n], frame) == nil {
			r.frames <- frame
		}
	}
}

func (r *reader) next(t *testing.T) *tap.Message {
	t.Helper()
	select {
	case frame := <-r.frames:
		return frame.Message
	case <-time.After(5 * time.Second):
		t.Fatal("no frame")
		return nil
	}
}

func collector(t *testing.T, network, addr string) *reader {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{frames: make(chan *tap.Dnstap, 1000)}
	var mu sync.Mutex
	var conns []net.Conn
	r.close = func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
	}
	t.Cleanup(r.close)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			go r.read(conn)
		}
	}()
	return r
}

// warnings keeps what was warned of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) Warningf(format string, v ...any) {
	w.mu.Lock()
	w.all = append(w.all, fmt.Sprintf(format, v...))
	w.mu.Unlock()
}

// lost is how many frames were told of as dropped.
func (w *warnings) lost(t *testing.T) (sum int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.all {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "Dropped dnstap messages: "))
		if err != nil {
			t.Error(err)
		}
		sum += n
	}
	return sum
}

func ask(h *Dnstap, n int) {
	for i := range n {
		h.ServeDNS(context.Background(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.example.org.", i), dns.TypeA))
	}
}

// All frames arrive, in their order; those that wait at the end, too.
func TestDial(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		addr := filepath.Join(loopback.Folder(t), "tap.sock")
		if network == "tcp" {
			addr = loopback.Addr()
		}
		r := collector(t, network, addr)
		d := &dialer{queue: newQueue(1), network: network, addr: addr, sendBuffer: 1 << 20, logger: new(warnings)}
		d.start()
		h := &Dnstap{Next: answers(), sink: d}
		ask(h, 200)
		d.stop()
		for i := range 200 {
			if q, a := r.next(t).GetType(), r.next(t).GetType(); q != tap.Message_CLIENT_QUERY || a != tap.Message_CLIENT_RESPONSE {
				t.Fatalf("%s: query %d: %v, %v", network, i, q, a)
			}
		}
	}
}

// A peer that goes away and comes back gets frames again.
func TestPeerComesBack(t *testing.T) {
	addr := loopback.Addr()
	r := collector(t, "tcp", addr)
	d := &dialer{queue: newQueue(1), network: "tcp", addr: addr, logger: new(warnings)}
	d.start()
	defer d.stop()
	h := &Dnstap{Next: answers(), sink: d}
	ask(h, 1)
	r.next(t)
	r.close()
	r = collector(t, "tcp", addr)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		ask(h, 1)
		select {
		case <-r.frames:
			return
		default:
		}
	}
	t.Error("no frame came to the peer after it was back")
}

// Without a peer nothing waits; what is too much is dropped and told.
func TestDropped(t *testing.T) {
	absent := make(chan error, 1)
	d := &dialer{
		queue: newQueue(1), network: "tcp", addr: loopback.Addr(), logger: new(warnings), absent: func(err error) { absent <- err },
	}
	d.start()
	defer d.stop()
	if <-absent == nil {
		t.Error("nobody was told why there is no connection")
	}
	began := time.Now()
	for range queueUnit + 5 {
		d.take([]byte{0, 0, 0, 1, 1}, 1)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	w := new(warnings)
	d.report(w)
	d.report(w)
	if len(w.all) != 1 || w.all[0] != "Dropped dnstap messages: 5" {
		t.Error(w.all)
	}
}

// Several peers connect; each gets all frames. A socket that was left in the file system is no obstacle, and a second user
// shares the listener.
func TestHub(t *testing.T) {
	addr := filepath.Join(loopback.Folder(t), "tap.sock")
	l, err := net.Listen("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	h, err := openHub("one", "unix", addr, nil, "", new(warnings))
	if err != nil {
		t.Fatal(err)
	}
	again, err := openHub("one", "unix", addr, nil, "", new(warnings))
	if err != nil || again != h {
		t.Fatal("the listener was not shared: ", err)
	}
	again.release()
	var readers []*reader
	for range 3 {
		conn, err := net.Dial("unix", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r := &reader{frames: make(chan *tap.Dnstap, 1000)}
		readers = append(readers, r)
		go r.read(conn)
	}
	for end := time.Now().Add(5 * time.Second); len(*h.peers.Load()) < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	tapper := &Dnstap{Next: answers(), sink: h}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { ask(tapper, 50) })
	}
	wg.Wait()
	h.release()
	for i, r := range readers {
		for range 400 {
			if m := r.next(t); m.GetQueryTimeSec() == 0 {
				t.Fatalf("peer %d: %v", i, m)
			}
		}
	}
	if _, err := os.Stat(addr); err == nil {
		t.Error("the socket is still there")
	}
}

// A peer that does not read holds nobody up.
func TestSlowPeer(t *testing.T) {
	addr := filepath.Join(loopback.Folder(t), "tap.sock")
	warned := new(warnings)
	h, err := openHub("one", "unix", addr, nil, "", warned)
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	slow, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := tap.NewReader(slow, &tap.ReaderOptions{Bidirectional: true, Timeout: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); len(*h.peers.Load()) < 1 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	frame := append([]byte{0, 0, 0, 200}, make([]byte, 200)...)
	for range 3 * queueUnit {
		h.take(frame, 1)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("queries waited for %v", took)
	}
	if (*h.peers.Load())[0].dropped.Load() == 0 {
		t.Error("nothing was dropped: the peer was none that does not read")
	}
	for end := time.Now().Add(2 * handshakeTime); len(*h.peers.Load()) > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if lost := warned.lost(t); lost < queueUnit {
		t.Errorf("when the peer was given up, %d frames were told of as lost", lost)
	}
}

// silent is a collector that takes connections and says nothing; those that it has taken are counted.
func silent(t *testing.T) (addr string, taken <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			conns <- conn
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), conns
}

// A collector that takes connections, and nothing else, holds up neither the start nor the end, whatever the number of
// directives that have it.
func TestSilentCollector(t *testing.T) {
	addr, taken := silent(t)
	all := make([]*dialer, 20)
	began := time.Now()
	for i := range all {
		all[i] = &dialer{queue: newQueue(1), network: "tcp", addr: addr, logger: new(warnings)}
		all[i].start()
	}
	if took := time.Since(began); took > handshakeTime/2 {
		t.Errorf("the start took %v", took)
	}
	for range all {
		<-taken
	}
	began = time.Now()
	for _, d := range all {
		d.end()
	}
	for _, d := range all {
		d.stop()
	}
	if took := time.Since(began); took > 2*lastTime {
		t.Errorf("the end took %v", took)
	}
}

// One that takes no frames any more does not, either.
func TestCollectorThatStopsReading(t *testing.T) {
	addr := filepath.Join(loopback.Folder(t), "tap.sock")
	l, err := net.Listen("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	warned := new(warnings)
	d := &dialer{queue: newQueue(1), network: "unix", addr: addr, logger: warned}
	d.start()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := tap.NewReader(conn, &tap.ReaderOptions{Bidirectional: true, Timeout: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	frame := append([]byte{0, 0, 16, 0}, make([]byte, 4096)...)
	for range queueUnit {
		d.take(frame, 1)
	}
	began := time.Now()
	d.stop()
	if took := time.Since(began); took > handshakeTime {
		t.Errorf("the end took %v", took)
	}
	if lost := warned.lost(t); lost < queueUnit/2 {
		t.Errorf("%d frames were told of as lost", lost)
	}
}
