package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/rcode"

	"github.com/miekg/dns"
)

// tries is how long each try to notify a secondary waits for its answer.
var tries = [...]time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second}

// maxNotifying is how many zones a secondary is told of at once.
const maxNotifying = 16

// Notify tells the secondaries of a zone that it has changed (RFC 1996), all at once, three times each at most, and waits for
// their answers. The error has a line for each that did not accept it. It is nil if nobody is to be told. A nil Transfer does
// nothing.
func (t *Transfer) Notify(zone string) error {
	if t == nil {
		return nil
	}
	return t.tell(context.Background(), zone)
}

// NotifyLater is Notify for who cannot wait: it takes place soon, once for all calls until then, and what goes wrong is logged. A
// nil Transfer, and one that has not been started, do nothing.
func (t *Transfer) NotifyLater(zone string) {
	if t == nil || t.notify == nil {
		return
	}
	if s := t.stanzaOf(zone); s != nil {
		for _, to := range s.to {
			if n := t.notify[to]; n != nil {
				n.queue(zone)
			}
		}
	}
}

// tell notifies the secondaries of a zone.
func (t *Transfer) tell(ctx context.Context, zone string) error {
	s := t.stanzaOf(zone)
	if s == nil {
		return nil
	}
	var wg sync.WaitGroup
	errs, sent := make([]error, len(s.to)), make([]bool, len(s.to))
	for i, to := range s.to {
		if to.any {
			continue
		}
		wg.Go(func() { t.tellOne(ctx, s, zone, to, func(err error) { errs[i], sent[i] = err, true }) })
	}
	wg.Wait()
	var told []string
	for i, to := range s.to {
		if sent[i] {
			told = append(told, to.String())
		}
	}
	if err := errors.Join(errs...); err != nil || len(told) == 0 {
		return err
	}
	tlog.Debugf("Sent notifies for zone %q to %v", zone, told)
	return nil
}

// tellOne notifies one secondary of a zone, unless that is under way: then who does it tells again. What comes of it is given to ended,
// each time.
func (t *Transfer) tellOne(ctx context.Context, s *stanza, zone string, to target, ended func(error)) {
	for again := t.telling.begin(zone, to); again; again = t.telling.end(zone, to) {
		m := t.notification(zone)
		answered, failed := s.notify(ctx, m, to.addr, t.findKey)
		var err error
		switch {
		case failed != nil:
			err = fmt.Errorf("notify for zone %q was not accepted by %q: %q", zone, to, failed)
		case answered != dns.RcodeSuccess:
			err = fmt.Errorf("notify for zone %q was not accepted by %q: rcode was %q", zone, to, rcode.ToString(answered))
		}
		ended(err)
	}
}

// notification is what tells of a zone. It has the SOA record, if that can be told without the whole zone (RFC 1996 §3.7): a
// secondary that is being sent the version before knows then that there is another one behind it; some forget a notification
// without it.
func (t *Transfer) notification(zone string) *dns.Msg {
	m := new(dns.Msg).SetNotify(zone)
	m.Authoritative = true
	for _, from := range t.Transferers {
		switch from := from.(type) {
		case Source:
			m.Answer = soaOf(from, zone)
		case Changing:
			m.Answer = soaAt(from, zone)
		}
		if len(m.Answer) > 0 {
			break
		}
	}
	return m
}

// soaOf is the SOA record of a Source's zone, nothing if it has no such zone.
func soaOf(from Source, zone string) (soa []dns.RR) {
	v, err := from.Version(zone)
	if err != nil {
		return nil
	}
	for rec := range v.RecordsOf(v.Origin(), v.Apex().Set(dns.TypeSOA)) {
		if rr, err := rec.RR(); err == nil {
			soa = []dns.RR{rr}
		}
	}
	return soa
}

// soaAt is the SOA record of a zone whose serials are looked at: all that there is to send to who has the last one.
func soaAt(from Changing, zone string) (soa []dns.RR) {
	serial := from.TransferSerials()[zone]
	if serial == 0 { // which would be the whole zone
		return nil
	}
	ch, err := from.Transfer(zone, serial)
	if err != nil {
		return nil
	}
	for records := range ch {
		if soa == nil && len(records) > 0 && records[0].Header().Rrtype == dns.TypeSOA {
			soa = records[:1:1]
		}
	}
	return soa
}

// notify sends m to one secondary until it answers, with the rcode returned.
func (s *stanza) notify(ctx context.Context, m *dns.Msg, to netip.AddrPort, find func(string) (keyring.Key, bool)) (answered int, err error) {
	c := dns.Client{Net: "udp", Timeout: tries[len(tries)-1]}
	algorithm := s.key.algorithm
	if s.key.name != "" {
		k, _ := find(s.key.name)
		c.TsigSecret = map[string]string{s.key.name: k.Secret}
		algorithm = cmp.Or(algorithm, k.Algorithm, keyring.DefaultAlgorithm)
	}
	if s.source.IsValid() {
		c.Dialer = &net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.source, 0))}
	}
	for _, timeout := range tries {
		try := m.Copy()
		try.Id = dns.Id()
		if s.key.name != "" {
			keyring.Sign(try, s.key.name, algorithm)
		}
		var reply *dns.Msg
		if reply, err = exchange(ctx, &c, try, to.String(), timeout); err == nil {
			return reply.Rcode, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return 0, err
}

// exchange is one try. If it fails before its time, as nobody listens there, it waits until then.
func exchange(ctx context.Context, c *dns.Client, m *dns.Msg, to string, timeout time.Duration) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := ask(ctx, c, m, to)
	if err == nil && (reply.Opcode != dns.OpcodeNotify || !reply.Response) {
		err = errors.New("the answer is none to a notification")
	}
	if err != nil {
		<-ctx.Done()
	}
	return reply, err
}

// ask sends m and waits for the answer until ctx is done.
func ask(ctx context.Context, c *dns.Client, m *dns.Msg, to string) (*dns.Msg, error) {
	socket, err := hostaddrs.Dial(ctx, cmp.Or(c.Dialer, new(net.Dialer)), "udp", to)
	if err != nil {
		return nil, err
	}
	conn := &dns.Conn{Conn: socket}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	reply, _, err := c.ExchangeWithConnContext(ctx, m, conn)
	if err != nil && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		err = os.ErrDeadlineExceeded // and not that it was closed, or read to which port
	}
	return reply, err
}

// notifiers is a notifier for each secondary: one that does not answer, which takes ten seconds a zone, holds up no other.
type notifiers map[target]*notifier

// newNotifiers starts them. Nobody is told before listens is closed, if it is not nil: a secondary that has no zone yet
// comes at once, and does not come again soon if nobody is there.
func (t *Transfer) newNotifiers(listens <-chan struct{}) notifiers {
	all := notifiers{}
	for _, s := range t.stanzas {
		for _, to := range s.to {
			if to.any || all[to] != nil {
				continue
			}
			all[to] = newNotifier(listens, func(ctx context.Context, zone string) {
				t.tellOne(ctx, t.stanzaOf(zone), zone, to, func(err error) {
					switch {
					case err == nil:
						tlog.Debugf("Sent notifies for zone %q to [%v]", zone, to)
					case ctx.Err() == nil:
						tlog.Warningf("Failed sending notifies: %v", err)
					}
				})
			})
		}
	}
	return all
}

// stop ends them, whatever is left to tell.
func (all notifiers) stop() {
	for _, n := range all {
		n.cancel()
	}
	for _, n := range all {
		n.done.Wait()
	}
}

// notifier is the goroutine that tells a secondary of changes when it comes to them; a zone that changes again before is
// told of once.
type notifier struct {
	tell func(ctx context.Context, zone string)

	mu     sync.Mutex
	zones  []string // to tell of, in order
	queued map[string]bool

	wake   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newNotifier(listens <-chan struct{}, tell func(ctx context.Context, zone string)) *notifier {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notifier{tell: tell, queued: map[string]bool{}, wake: make(chan struct{}, 1), cancel: cancel}
	n.done.Go(func() { n.run(ctx, listens) })
	return n
}

func (n *notifier) queue(zone string) {
	n.mu.Lock()
	if !n.queued[zone] {
		n.queued[zone] = true
		n.zones = append(n.zones, zone)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default: // it is awake
	}
}

// next is the next zone to tell of, "" if there is none.
func (n *notifier) next() (zone string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.zones) == 0 {
		n.zones = nil
		return ""
	}
	zone, n.zones = n.zones[0], n.zones[1:]
	delete(n.queued, zone)
	return zone
}

func (n *notifier) run(ctx context.Context, listens <-chan struct{}) {
	if listens != nil {
		select {
		case <-listens:
		case <-ctx.Done():
			return
		}
	}
	room := make(chan struct{}, maxNotifying)
	for {
		select {
		case <-n.wake:
		case <-ctx.Done():
			return
		}
		for zone := n.next(); zone != ""; zone = n.next() {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			n.done.Go(func() {
				defer func() { <-room }()
				n.tell(ctx, zone)
			})
		}
	}
}
