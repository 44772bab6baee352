package nonblock

import (
	"io"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/nonblock/acktest"
)

// The client holds the second of two writes back until the first is acknowledged. Without QuickAck that takes 40 ms
// once both have talked for a while.
func TestQuickAck(t *testing.T) {
	client, server := pair(t)
	client.SetNoDelay(false)
	conn := Conn(server)
	go func() {
		b := make([]byte, 2)
		for {
			if _, err := io.ReadFull(conn, b); err != nil {
				return
			}
			conn.Write(b)
		}
	}()
	b := make([]byte, 2)
	exchange := func() {
		client.Write([]byte{1})
		client.Write([]byte{2})
		if _, err := io.ReadFull(client, b); err != nil {
			t.Fatal(err)
		}
	}
	slow := time.Now()
	for range 5 {
		exchange()
	}
	if took := time.Since(slow); took < 40*time.Millisecond {
		t.Skipf("this system does not put off acknowledgements: %v", took)
	}
	QuickAck(conn, true)
	exchange()
	acktest.Prompt(t, nil, exchange)
}
