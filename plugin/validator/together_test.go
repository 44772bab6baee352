package validator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

var keysOfExample = validate.Question{Name: rrset.MustName("example."), Type: dns.TypeDNSKEY}

// keysLab is a validator above a source of which many ask at one time. keys is called for each question for keys, the first
// being 1, and tells how it ends if not with the reply.
func keysLab(t *testing.T, keys func(ctx context.Context, v *Validator, n int32) error) *Validator {
	v, src := lab(t, "")
	var mu sync.Mutex
	var n atomic.Int32
	v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if r.Question[0].Qtype == dns.TypeDNSKEY {
			if err := keys(ctx, v, n.Add(1)); err != nil {
				return dns.RcodeServerFailure, err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		return src.ServeDNS(ctx, w, r)
	})
	return v
}

// wait is how many wait for the keys of example.
func (v *Validator) wait() int {
	v.fetches.mu.Lock()
	defer v.fetches.mu.Unlock()
	if s := v.fetches.open[keysOfExample]; s != nil {
		return s.joined
	}
	return 0
}

// gone is the key of what ends a client's context, in that.
type gone struct{}

// askAll asks as so many clients, and returns how many had a secure answer.
func askAll(t *testing.T, v *Validator, n int) (secure int32) {
	t.Helper()
	var all sync.WaitGroup
	var good atomic.Int32
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		all.Go(func() {
			m := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
			rec := dnstest.NewRecorder(&test.ResponseWriter{})
			if v.ServeDNS(context.WithValue(ctx, gone{}, cancel), rec, m.SetEdns0(1232, true)); rec.Msg != nil && rec.Msg.AuthenticatedData {
				good.Add(1)
			}
		})
		if i == 0 {
			eventually.Holds(t, "the first one asks", func() bool { return v.fetches.underWay() > 0 })
		}
	}
	all.Wait()
	return good.Load()
}

// underWay is how many fetches are under way.
func (f *fetches) underWay() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

// Many who need the same keys have them asked for once.
func TestKeysAreAskedForTogether(t *testing.T) {
	const clients = 20
	var asked atomic.Int32
	v := keysLab(t, func(_ context.Context, v *Validator, _ int32) error {
		asked.Add(1)
		eventually.Holds(t, "all wait", func() bool { return v.wait() == clients-1 })
		return nil
	})
	if n := askAll(t, v, clients); n != clients || asked.Load() != 1 {
		t.Errorf("%d of %d have a secure answer, keys were asked for %d times", n, clients, asked.Load())
	}
}

// Whoever gives up, as his client is gone, leaves it to another one to ask; that costs those who wait none of their restarts.
func TestOthersAskForKeys(t *testing.T) {
	const clients, leave = restarts + 4, restarts + 1
	var asked atomic.Int32
	v := keysLab(t, func(ctx context.Context, v *Validator, n int32) error {
		if asked.Store(n); n > leave {
			return nil
		}
		eventually.Holds(t, "all others wait", func() bool { return v.wait() == clients-int(n) })
		ctx.Value(gone{}).(context.CancelFunc)()
		<-ctx.Done()
		return ctx.Err()
	})
	n := askAll(t, v, clients) // who has left may find what others were told
	if n < clients-leave || asked.Load() < leave+1 {
		t.Errorf("%d of %d have a secure answer, keys were asked for %d times", n, clients, asked.Load())
	}
}

// That nobody answers is for all who wait.
func TestKeysThatNobodyHas(t *testing.T) {
	const clients = 20
	v := keysLab(t, func(_ context.Context, v *Validator, n int32) error {
		if n == 1 {
			eventually.Holds(t, "all wait", func() bool { return v.wait() == clients-1 })
		}
		return errors.New("no reply")
	})
	if n := askAll(t, v, clients); n != 0 {
		t.Errorf("%d have a secure answer", n)
	}
}

// What plugins below ask this server themselves, to answer for the keys, does not wait for that.
func TestWhoAsksForAllIsNotWaitedForBelow(t *testing.T) {
	var v *Validator
	v = keysLab(t, func(ctx context.Context, _ *Validator, n int32) error {
		if n > 1 {
			return nil
		}
		m := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := v.ServeDNS(ctx, rec, m.SetEdns0(1232, true)); err != nil || !rec.Msg.AuthenticatedData {
			t.Errorf("asked within: %v %v", err, rec.Msg)
		}
		return nil
	})
	began := time.Now()
	if m, _, err := ask(t, v, "www.example.", do); err != nil || !m.AuthenticatedData {
		t.Errorf("%v %v after %v", err, m, time.Since(began))
	}
}
