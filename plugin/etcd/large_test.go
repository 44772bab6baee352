package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

func requestFor(name string, typ uint16) request.Request {
	return request.Request{Req: new(dns.Msg).SetQuestion(name, typ), W: &test.ResponseWriter{}, Zone: "skydns.test."}
}

// Queries for names with many services below them take turns; others do not wait for them, nor does the question whether
// there is anything.
func TestTurns(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	var all []etcdcv3.Op
	for i := range 100 {
		all = append(all, etcdcv3.OpPut(fmt.Sprintf("/skydns/test/skydns/many/n%d", i), fmt.Sprintf(`{"host":"192.0.2.%d"}`, i)))
	}
	if _, err := s.Client.Txn(ctx).Then(all...).Commit(); err != nil {
		t.Fatal(err)
	}
	s.put("one.skydns.test", `{"host":"192.0.2.1"}`)
	for _, viewSize := range []int64{0, defaultViewSize} {
		e := s.plugin(viewSize)
		answers := func(ctx context.Context, name string, typ uint16) (int, error) {
			ctx, done := withTurn(ctx)
			defer done()
			a, err := e.answer(ctx, "skydns.test.", requestFor(name, typ), plugin.Options{})
			return len(a.records), err
		}
		if err := room().Acquire(ctx, roomSize()); err != nil {
			t.Fatal(err)
		}
		for _, typ := range []uint16{dns.TypeANY, dns.TypeHTTPS, dns.TypeCNAME} {
			if n, err := answers(ctx, "many.skydns.test.", typ); n != 0 || err != nil {
				t.Errorf("%s: %d records, %v", dns.TypeToString[typ], n, err)
			}
		}
		if n, err := answers(ctx, "one.skydns.test.", dns.TypeA); n != 1 || err != nil {
			t.Errorf("one: %d records, %v", n, err)
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		if n, err := answers(short, "many.skydns.test.", dns.TypeA); n != 0 || err == nil {
			t.Errorf("many, out of turn: %d records, %v", n, err)
		}
		cancel()
		room().Release(roomSize())
		for range 3 {
			if n, err := answers(ctx, "many.skydns.test.", dns.TypeA); n != 100 || err != nil {
				t.Errorf("many: %d records, %v", n, err)
			}
		}
		if !room().TryAcquire(roomSize()) {
			t.Error("a turn was not given back")
		} else {
			room().Release(roomSize())
		}
	}
}

// What a query has led to, and goes on when it is over, keeps no room.
func TestTurnThatIsOver(t *testing.T) {
	ctx, done := withTurn(t.Context())
	inner, innerDone := withTurn(ctx)
	innerDone()
	if err := takeTurn(inner, 100); err != nil {
		t.Fatal(err)
	}
	done()
	if err := takeTurn(inner, 100); err != nil { // it has begun before
		t.Fatal(err)
	}
	later, laterDone := withTurn(inner)
	if err := takeTurn(later, 100); err != nil {
		t.Fatal(err)
	}
	if room().TryAcquire(roomSize()) {
		t.Error("who begins when it is over has taken nothing")
	}
	laterDone()
	if !room().TryAcquire(roomSize()) {
		t.Fatal("what was taken is not given back")
	}
	room().Release(roomSize())
}

func TestRoomFor(t *testing.T) {
	for limit, want := range map[int64]int64{1 << 20: 4096, 96 << 20: 12288, 1 << 62: 1 << 20} {
		if got := roomFor(limit); got != want {
			t.Errorf("%d: %d keys, want %d", limit, got, want)
		}
	}
}

// slowLease is an etcd that takes its time for leases.
type slowLease struct {
	etcdcv3.Lease
	asked atomic.Int64
}

func (s *slowLease) TimeToLive(ctx context.Context, id etcdcv3.LeaseID, _ ...etcdcv3.LeaseOption) (*etcdcv3.LeaseTimeToLiveResponse, error) {
	s.asked.Add(1)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return &etcdcv3.LeaseTimeToLiveResponse{ID: id, TTL: 77}, nil
	}
}

// All leases of an answer have as much time as one, and what was not told in it is asked for with the next answer.
func TestManyLeases(t *testing.T) {
	const n = 400
	e, slow := leasedView(t, n)
	known := func() (n int) {
		a, err := e.answer(t.Context(), "skydns.test.", requestFor("leased.skydns.test.", dns.TypeA), plugin.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rr := range a.records {
			if rr.Header().Ttl < defaultTTL {
				n++
			}
		}
		return n
	}
	first := known()
	if asked := slow.asked.Load(); asked >= n || asked <= 1 {
		t.Errorf("asked for %d leases of %d", asked, n)
	}
	second := known()
	if second <= first {
		t.Errorf("%d leases were known at first, then %d", first, second)
	}
	// Also when what is known is to be asked for again: the others are first.
	for id, l := range e.leases.all {
		l.asked = l.asked.Add(-leaseKnown)
		e.leases.all[id] = l
	}
	if third := known(); third <= second {
		t.Errorf("%d leases were known, then %d", second, third)
	}
}

// leasedView is an Etcd with a copy of n services, each of which has a lease that takes its time.
func leasedView(t *testing.T, n int) (*Etcd, *slowLease) {
	t.Helper()
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{"http://127.0.0.1:1"}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	slow := &slowLease{Lease: client.Lease}
	client.Lease = slow
	v := &view{prefix: "/skydns/", ready: true, kvs: map[string]*mvccpb.KeyValue{}}
	for i := range n {
		key := fmt.Sprintf("/skydns/test/skydns/leased/n%03d", i)
		v.keys = append(v.keys, key)
		v.kvs[key] = &mvccpb.KeyValue{Key: []byte(key), Value: fmt.Appendf(nil, `{"host":"10.0.%d.%d"}`, i/250, i%250), Lease: int64(i + 1)}
	}
	return &Etcd{Zones: []string{"skydns.test."}, PathPrefix: "skydns", Client: client, view: v}, slow
}

// A transfer has the time that it takes: whoever gets the zone keeps the TTLs.
func TestLeasesOfTransfer(t *testing.T) {
	e, slow := leasedView(t, 200)
	records, err := e.Transfer("skydns.test.", 0)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for some := range records {
		for _, rr := range some {
			if rr.Header().Rrtype == dns.TypeA && rr.Header().Ttl < defaultTTL {
				known++
			}
		}
	}
	if asked := slow.asked.Load(); known != 200 || asked != 200 {
		t.Errorf("%d leases of 200 are known, %d were asked for", known, asked)
	}
}

// hangingLease is an etcd that answers, but not for leases.
type hangingLease struct{ etcdcv3.Lease }

func (hangingLease) TimeToLive(ctx context.Context, _ etcdcv3.LeaseID, _ ...etcdcv3.LeaseOption) (*etcdcv3.LeaseTimeToLiveResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Leases that cannot be known are no reason for an answer to fail, however many pages its keys have.
func TestLeasesInPages(t *testing.T) {
	s := start(t)
	lease, err := s.Client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	for i := range n {
		s.put(fmt.Sprintf("n%d.leased.skydns.test", i), fmt.Sprintf(`{"host":"192.0.2.%d"}`, i), etcdcv3.WithLease(lease.ID))
	}
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: s.Client.Endpoints(), Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.Lease = hangingLease{client.Lease}
	e := &Etcd{Zones: []string{"skydns.test."}, PathPrefix: "skydns", Client: client}
	a, err := e.answer(t.Context(), "skydns.test.", requestFor("leased.skydns.test.", dns.TypeA), plugin.Options{})
	if err != nil || len(a.records) != n {
		t.Errorf("%d records, %v", len(a.records), err)
	}
}

// As many values as one likes may be no services: the log does not tell of each with every query.
func TestManyWarnings(t *testing.T) {
	var w warnings
	now := time.Now()
	due := func() (n int) {
		for i := range 3 * maxTexts {
			if w.due(fmt.Sprint(i), now) {
				n++
			}
		}
		return n
	}
	if n := due(); n != maxTexts {
		t.Errorf("%d texts were due", n)
	}
	if n := due(); n != 0 {
		t.Errorf("%d texts were due again", n)
	}
	if now = now.Add(warnPause); due() != maxTexts {
		t.Error("after a minute, others are not due")
	}
	// Texts that are known are not gone through for each of others: that took a second of a processor for 100,000.
	if until := now.Add(warnPause); !w.full.Equal(until) {
		t.Errorf("all are looked at again at %s, want %s", w.full, until)
	}
	w.last["1"] = now.Add(-time.Hour)
	if w.due("another", now.Add(time.Second)) {
		t.Error("all were looked at before one of them could be old")
	}
	if now = now.Add(warnPause); !w.due("another", now) {
		t.Error("nothing is due any more")
	}
}

// A page of keys is as large as it is to be, whatever the values are, and a compaction between two of them does no harm.
func TestPages(t *testing.T) {
	var keys []*mvccpb.KeyValue
	for i := range 20000 {
		size := 100
		if i < 80 {
			size = 1 << 20
		}
		keys = append(keys, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "/s/%05d", i), Value: make([]byte, size)})
	}
	for _, compacted := range []bool{false, true} {
		got, most, asked := 0, 0, 0
		get := func(from string, opts ...etcdcv3.OpOption) (*etcdcv3.GetResponse, error) {
			op := etcdcv3.OpGet(from, opts...)
			if asked++; asked > 1 && op.Rev() == 0 != (compacted && asked > 3) {
				t.Errorf("request %d is for revision %d", asked, op.Rev())
			}
			if compacted && asked == 3 {
				return nil, rpctypes.ErrCompacted
			}
			i, _ := slices.BinarySearchFunc(keys, from, func(kv *mvccpb.KeyValue, k string) int { return strings.Compare(string(kv.Key), k) })
			end := min(i+int(op.Limit()), len(keys))
			return &etcdcv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: 7}, Kvs: keys[i:end], More: end < len(keys)}, nil
		}
		err := pages(get, "/s/", func(r *etcdcv3.GetResponse) error {
			octets := 0
			for _, kv := range r.Kvs {
				octets += len(kv.Value)
			}
			got, most = got+len(r.Kvs), max(most, octets)
			return nil
		})
		if err != nil || got != len(keys) || asked > 100 || most > 16<<20 {
			t.Errorf("%d of %d keys with %d requests, up to %d octets in one, %v", got, len(keys), asked, most, err)
		}
	}
}
