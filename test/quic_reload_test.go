package test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// askNew connects to a server of quic:// and asks it one question.
func askNew(addr string, q *dns.Msg) (*dns.Msg, error) {
	conf := clients.Trusting.Clone()
	conf.NextProtos = []string{"doq"}
	ctx, cancel := context.WithTimeout(context.Background(), clients.AskTime)
	defer cancel()
	conn, err := quic.DialAddr(ctx, addr, conf, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c := &clients.QUICClient{Conn: conn}
	defer c.Close()
	return c.Ask(q)
}

// Clients that connect over QUIC, or ask, while one reload follows another are answered: where the next configuration goes on with
// the connections, and where it cannot, as it wants other certificates of clients.
func TestReloadsKeepQUICClients(t *testing.T) {
	for name, auth := range map[string][2]string{"goes on": {"nocert", "nocert"}, "begins anew": {"nocert", "request"}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			certificates(t, dir)
			doq, doh3 := loopback.Port(), loopback.Port()
			corefile := func(n int) string {
				return fmt.Sprintf("# %d\nquic://.:%d https3://.:%d {\nbind 127.0.0.1\ntls %s/cert.pem %[4]s/key.pem {\nclient_auth %s\n}\nwhoami\n}",
					n, doq, doh3, dir, auth[n%2])
			}
			i, err := CoreDNSServer(corefile(0))
			if err != nil {
				t.Fatal(err)
			}
			r := &running{i}
			defer r.end()
			stop := make(chan struct{})
			var asked atomic.Int64
			var wg sync.WaitGroup
			asks := func(kind string, ask func(q *dns.Msg) (*dns.Msg, error)) {
				wg.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						m, err := ask(question(fmt.Sprintf("q%d.example.org.", n), dns.TypeA))
						if err != nil || m.Rcode != dns.RcodeSuccess {
							t.Errorf("%s query %d: got %v, %v", kind, n, m, err)
							return
						}
						asked.Add(1)
					}
				})
			}
			for range 4 {
				asks("DoQ", func(q *dns.Msg) (*dns.Msg, error) { return askNew(fmt.Sprintf("127.0.0.1:%d", doq), q) })
			}
			asks("DoH3", func(q *dns.Msg) (*dns.Msg, error) {
				c := clients.DialHTTP3(t, fmt.Sprintf("127.0.0.1:%d", doh3), "POST")
				defer c.Close()
				return c.Ask(q)
			})
			for n := range 20 {
				next, err := r.instance.Restart(NewInput(corefile(n + 1)))
				if err != nil {
					t.Fatalf("reload %d: %v", n, err)
				}
				r.instance = next
				time.Sleep(10 * time.Millisecond)
			}
			close(stop)
			wg.Wait()
			t.Logf("%d queries", asked.Load())
		})
	}
}
