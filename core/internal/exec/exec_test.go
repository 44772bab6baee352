package exec

import (
	"context"
	"net/netip"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

// decider decides as a test says.
type decider struct {
	wire    func(w *wire.Reply, q *wire.Query) ([]byte, wire.Outcome)
	message func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg)
}

func (d *decider) ServeWire(w *wire.Reply, q *wire.Query) ([]byte, wire.Outcome) { return d.wire(w, q) }
func (d *decider) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) {
	d.message(ctx, w, r)
}
func (d *decider) LargeTables([]readahead.Table) []readahead.Table { return nil }

// serviceOf is a Service of d, with a label of the test's own.
func serviceOf(t testing.TB, d *decider) *service.Service {
	return &service.Service{Decider: d, Label: "dns://" + t.Name(), Wire: true, Finish: new(reply.Finisher)}
}

// packet is the query for name.
func packet(t testing.TB, name string) []byte {
	t.Helper()
	b, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var peer = wire.Peer{
	Client: netip.MustParseAddrPort("192.0.2.1:4711"), Local: netip.MustParseAddrPort("192.0.2.53:53"), Proto: wire.TCP, Limit: wire.MaxMessage,
}

// mayWait lets so many queries wait until the test ends.
func mayWait(t *testing.T, n int) {
	SetWaiting(n)
	t.Cleanup(func() { SetWaiting(memory.Waiting(memory.Limit())) })
}

// nobodyWaits fails if a query waits, or a place was not given back.
func nobodyWaits(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "nobody waits", func() bool {
		atWork, atExchanges := Waits()
		return atWork == 0 && atExchanges == 0
	})
}

// exchange is one that the test ends.
type exchange struct {
	eventloop.Ending
	parked chan eventloop.Resumer // who waits for it
}

func newExchange() *exchange { return &exchange{parked: make(chan eventloop.Resumer, 1)} }

func (e *exchange) Then(r eventloop.Resumer) {
	e.Ending.Then(r)
	e.parked <- r
}

// sink keeps what is sent.
type sink struct {
	mu   sync.Mutex
	sent [][]byte
}

func (s *sink) Send(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, append([]byte(nil), b...))
	return nil
}
func (s *sink) Close() error { return nil }
func (s *sink) Hijack()      {}

// ownProcess is the variable of the environment that has a test run alone in its process; it is its part, if it has
// several.
const ownProcess = "EXEC_OWN_PROCESS"

// dies runs a part of the test in a process of its own, which a panic with that text must end.
func dies(t *testing.T, part, text string) {
	t.Helper()
	own := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout="+clients.AskTime.String())
	own.Env = append(os.Environ(), ownProcess+"="+part)
	if out, err := own.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: "+text) {
		t.Errorf("%s: %v\n%s", part, err, out)
	}
}
