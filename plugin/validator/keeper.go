package validator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/autotrust"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// keeper looks after anchors: it follows the keys of positive ones (RFC 5011), and ends negative ones (RFC 7646 §4). Its
// one goroutine is the only writer of zones. It begins with the first query that is validated, so that a server that
// nobody asks sends nothing.
type keeper struct {
	*Validator
	path   string // of the state; may be empty
	zones  []*autotrust.Zone
	lost   map[string]time.Time
	looked bool // since the start: the state may say that nothing is due

	used    atomic.Bool
	unready atomic.Bool
	wake    chan struct{}
	turns   chan struct{} // negative trust anchors have begun or ended
	cancel  context.CancelFunc
	running sync.WaitGroup
	release func() // of the gauges; nil before the start
}

// trust is the anchors as they are now, and the tags of the root's, of five digits. It does not change.
type trust struct {
	anchors  map[string]*validate.Anchor
	tags     map[string]bool
	states   []status.Anchor            // of keys that are followed
	followed map[string][]autotrust.Key // by zone
	conf     validate.Config            // with these anchors
}

// trusts has t decide from now on.
func (v *Validator) trusts(t *trust) {
	t.conf = v.conf
	t.conf.Anchors = t.anchors
	v.live.Store(t)
}

func newKeeper(v *Validator) *keeper {
	return &keeper{Validator: v, path: v.state, lost: map[string]time.Time{}, wake: make(chan struct{}, 1), turns: make(chan struct{}, 1)}
}

// start reads the state, and begins.
func (k *keeper) start() error {
	if err := k.load(); err != nil {
		return err
	}
	enter(k.text, k.Validator)
	k.release = k.counts.hold(k)
	k.negatives.turned = k.turned // what a cache has taken over was told with those that hold so far
	k.publish()
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(context.Background())
	if k.prefetches != nil {
		r := &renewer{Validator: k.Validator, ctx: ctx, places: make(chan struct{}, renewals)}
		k.memory.renew = r.renew
	}
	k.running.Go(func() { k.run(ctx) })
	return nil
}

func (k *keeper) stop() {
	if k.cancel != nil {
		k.cancel()
		k.running.Wait()
	}
	if k.release != nil {
		k.release()
	}
	leave(k.text, k.Validator)
}

// read reads the state, and looks whether it could be written.
func (k *keeper) read() (map[string]*autotrust.Zone, error) {
	byName := map[string]*autotrust.Zone{}
	if k.path == "" {
		return byName, nil
	}
	if err := zonefile.Writable(filepath.Dir(k.path)); err != nil {
		return nil, fmt.Errorf("state %s: its folder: %w", k.path, err)
	}
	b, err := os.ReadFile(k.path)
	if os.IsNotExist(err) {
		return byName, nil
	}
	if err != nil {
		return nil, err
	}
	zones, err := autotrust.Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("state %s: %w", k.path, err)
	}
	for _, z := range zones {
		byName[z.Name] = z
	}
	return byName, nil
}

// load reads the state; one that does not exist, or says something else than is known then, is written, so that a folder that
// cannot be written is found at once.
func (k *keeper) load() error {
	byName, err := k.read()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(k.anchors)) {
		z := byName[name]
		if z == nil {
			z = &autotrust.Zone{Name: name}
		}
		k.zones = append(k.zones, z)
	}
	return k.save()
}

func (k *keeper) save() error {
	if k.path == "" {
		return nil
	}
	state := autotrust.Append(nil, k.zones)
	if is, err := os.ReadFile(k.path); err == nil && bytes.Equal(is, state) {
		return nil // so that a full disk stops nobody who has nothing to write
	}
	return autotrust.WriteFile(k.path, state)
}

// publish makes anchors of the configuration and of what is known of keys: both count, but for keys that are revoked.
func (k *keeper) publish() {
	t := &trust{anchors: map[string]*validate.Anchor{}, tags: map[string]bool{}, followed: followed(k.zones)}
	for name, a := range k.anchors {
		t.anchors[name] = a
	}
	for _, z := range k.zones {
		var ended []string
		for _, key := range z.Keys {
			t.states = append(t.states, status.Anchor{
				Zone: rrset.Text(z.Name), Tag: autotrust.Tag(key.RDATA), Algorithm: key.RDATA[3], State: key.State.String(), Since: key.Since,
			})
			if z.Ended(key.RDATA) {
				ended = append(ended, key.RDATA)
			}
		}
		a := *t.anchors[z.Name].Without(z.Name, ended)
		a.Keys = append(a.Keys[:len(a.Keys):len(a.Keys)], z.Trusted()...)
		t.anchors[z.Name] = &a
	}
	if a := t.anchors[rrset.Root]; a != nil {
		for _, ds := range a.DS {
			t.tags[fmt.Sprintf("%05d", int(ds[0])<<8|int(ds[1]))] = true
		}
		for _, key := range a.Keys {
			t.tags[fmt.Sprintf("%05d", autotrust.Tag(key))] = true
		}
	}
	k.trusts(t)
	k.counts.anchors(k.zones)
}

// How often it is looked whether something is due. A clock that tests move may jump.
const (
	looks      = 30 * time.Second
	movedLooks = time.Second
)

// use notes that something was validated.
func (k *keeper) use() {
	if !k.used.Load() && k.used.CompareAndSwap(false, true) {
		k.wake <- struct{}{}
	}
}

func (k *keeper) run(ctx context.Context) {
	every := looks
	if clock.Moved() {
		every = movedLooks
	}
	ticks, ends := time.NewTicker(every), time.NewTimer(every)
	defer ticks.Stop()
	defer ends.Stop()
	again := time.Duration(0)
	for {
		now := clock.Now()
		k.counts.show(k.negatives.get(), now)
		ends.Reset(min(k.negatives.next(now), cmp.Or(again, longestNTA)))
		select {
		case <-ctx.Done():
			return
		case <-k.turns:
			continue
		case <-k.wake:
		case <-ticks.C:
		case <-ends.C:
		}
		again = k.look(ctx, clock.Now())
	}
}

// look does what is due. again is when to look once more, 0 for the usual time.
func (k *keeper) look(ctx context.Context, now time.Time) (again time.Duration) {
	now = now.Round(0) // by the clock that goes on while the machine is asleep, as the state has it
	if again = k.negatives.unsettled(now); again == 0 {
		switch changed, err := k.negatives.load(now); {
		case err != nil:
			logger.Errorf("Negative trust anchors: %v", err)
		case changed:
			logger.Infof("Negative trust anchors: %s was read anew", k.negatives.path)
		}
	}
	k.endOver(now)
	if !k.used.Load() {
		return again
	}
	if k.follow {
		for _, z := range k.zones {
			if !z.Next.After(now) || z.Next.Sub(now) > longestPause {
				k.refresh(ctx, z, now)
			} else if !k.looked || !k.lost[z.Name].IsZero() {
				k.regain(ctx, z, now)
			}
		}
		k.looked = true
	}
	k.endMended(ctx, now)
	return again
}

// longestPause is the longest time between two looks at a zone's keys; a clock that was set back does not lengthen it.
const longestPause = 15 * 24 * time.Hour

// refresh looks at a zone's keys (RFC 5011 §2.3).
func (k *keeper) refresh(ctx context.Context, z *autotrust.Zone, now time.Time) {
	q := validate.Question{Name: z.Name, Type: dns.TypeDNSKEY}
	verdict, m := k.own(ctx, q)
	if ctx.Err() != nil {
		return
	}
	set, before := (*rrset.Set)(nil), len(z.Trusted())
	if m != nil {
		for _, s := range m.Section[rrset.Answer] {
			if s.Type == q.Type && s.Name == q.Name {
				set = s
			}
		}
	}
	var changes []string
	ttl, left, failed := time.Duration(0), time.Duration(0), set == nil || verdict.Status != validate.Secure
	if set != nil {
		ttl, left = time.Duration(set.TTL)*time.Second, validate.SignatureLeft(set, k.now())
		seen := autotrust.Seen{Secure: verdict.Status == validate.Secure, TTL: ttl, Left: left}
		set.Each(func(r string) bool { seen.Keys = append(seen.Keys, r); return true })
		seen.Trusted = func(r string) bool { return k.anchors[z.Name].SpeaksFor(z.Name, r) }
		seen.Revokes = func(r string) bool { return k.conf.SignedBy(set, z.Name, r, k.now()) }
		changes = z.See(seen, now)
	}
	changes = append(changes, z.Age(now)...)
	z.Next = now.Add(autotrust.Refresh(ttl, left, failed))
	for _, c := range changes {
		logger.Infof("Anchor of %s: %s", rrset.Text(z.Name), c)
	}
	k.tell(z, verdict, set != nil, now)
	if err := k.save(); err != nil {
		logger.Errorf("State of anchors: %v", err)
	}
	if len(changes) > 0 || before != len(z.Trusted()) {
		k.publish()
		k.memory.forget()
	}
	if !failed {
		k.counts.refreshed(now)
	}
	if k.signal {
		k.tellTags(ctx, z.Name)
	}
}

// A zone whose keys were not believed for a moment is not looked at again for an hour or more: RFC 5011 §2.3 forbids it. What
// clients ask for is validated as soon as its keys are right again, and so is what is asked for here.

// regain looks whether a zone is believed of which no key was, or of which that is not known yet.
func (k *keeper) regain(ctx context.Context, z *autotrust.Zone, now time.Time) {
	if verdict, m := k.own(ctx, validate.Question{Name: z.Name, Type: dns.TypeSOA}); m != nil {
		k.tell(z, verdict, true, now)
	}
}

// tell tells once an hour that none of a zone's keys is believed. Until that is mended the server is not ready.
func (k *keeper) tell(z *autotrust.Zone, verdict *validate.Verdict, answered bool, now time.Time) {
	if !answered || verdict.Status != validate.Bogus || verdict.Code != dns.ExtendedErrorCodeDNSKEYMissing {
		delete(k.lost, z.Name)
	} else if last, ok := k.lost[z.Name]; !ok || now.Sub(last) >= time.Hour {
		k.lost[z.Name] = now
		logger.Errorf("Anchor of %s: no key of the zone is believed: %s", rrset.Text(z.Name), verdict.Text)
	}
	k.unready.Store(len(k.lost) > 0)
}

// tellTags tells a zone's servers which keys are believed (RFC 8145 §5).
func (k *keeper) tellTags(ctx context.Context, zone string) {
	a := k.live.Load().anchors[zone]
	name := signalName(zone, a)
	if name == "" {
		return
	}
	i := k.inquire(ctx, validate.Question{Name: name, Type: dns.TypeNULL})
	_, _, _ = i.ask(i.q, i.query)
}

// own validates a question of the server's own.
func (k *keeper) own(ctx context.Context, q validate.Question) (*validate.Verdict, *rrset.Message) {
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	i := k.inquire(ctx, q)
	i.anew = q.Type == dns.TypeDNSKEY
	reply, _, _ := i.ask(q, i.query)
	if reply == nil {
		return &validate.Verdict{Finding: validate.Finding{Status: validate.Bogus}}, nil
	}
	verdict, reply := i.judge(reply)
	m, err := parse(reply)
	if err != nil {
		return verdict, nil
	}
	return verdict, m
}

const ownTime = 20 * time.Second

// inquire is an inquiry that no client began.
func (k *keeper) inquire(ctx context.Context, q validate.Question) *inquiry {
	return &inquiry{Validator: k.Validator, client: ctx, ctx: ctx, w: nobody{}, q: q, query: fetching(q), sources: map[validate.Question]*advice.Source{q: {Proof: true}}}
}

// nobody is the client of the server's own questions.
type nobody struct{ dns.ResponseWriter }

// LocalAddr and RemoteAddr are of the loopback interface.
func (nobody) LocalAddr() net.Addr  { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53} }
func (nobody) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)} }
