package dnstap

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	tap "github.com/dnstap/golang-dnstap"
)

// A collector that goes while nobody asks anything leaves no connection behind.
func TestPeerGoesWhileIdle(t *testing.T) {
	t.Parallel()
	addr := filepath.Join(loopback.Folder(t), "tap.sock")
	h, err := openHub(t, "unix", addr, nil, "", new(warnings))
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	conn, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tap.NewReader(conn, &tap.ReaderOptions{Bidirectional: true}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the collector is connected", func() bool { return len(*h.peers.Load()) == 1 })
	conn.Close()
	eventually.Holds(t, "its connection is gone", func() bool { return len(*h.peers.Load()) == 0 })
}

// A collector that is started again while nobody asks anything is connected to before there are frames: those that are
// written to a connection that has ended would be lost, and not even counted.
func TestCollectorComesBackWhileIdle(t *testing.T) {
	t.Parallel()
	addr, taken := silent(t)
	d := &dialer{queue: newQueue(1), network: "tcp", addr: addr, logger: new(warnings)}
	d.start()
	defer d.stop()
	conn := <-taken
	if _, err := tap.NewReader(conn, &tap.ReaderOptions{Bidirectional: true}); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	select {
	case <-taken:
	case <-time.After(2 * reportEvery):
		t.Error("nobody has connected again")
	}
}
