package proxy

import (
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"testing"
	"time"
)

func TestAnswersWhileAConnectionIsOpened(t *testing.T) {
	for after, goOn := range map[time.Duration]bool{eventloop.LeastPatience / 2: false, 2 * eventloop.LeastPatience: true} {
		p := proxyTo(t, "127.0.0.1:443", transport.HTTPS3)
		o := &opening{since: 1, done: make(chan struct{})}
		c := &http3Client{users: 2, opening: o}
		p.put(t.Context(), c, 1, 1+int64(after), nil)
		if o.over != goOn || c.connected != goOn {
			t.Errorf("after %v: %+v", after, o)
		}
	}
}
