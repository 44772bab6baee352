package etcd

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// view is a copy of what is below a path, which follows the changes. If the connection is lost, it stays as it was until
// the changes since then have come.
type view struct {
	client func(context.Context) *etcdcv3.Client // nil as long as there is none
	prefix string                                // with a slash at its end
	max    int64                                 // octets of keys and values
	seen   func(revision int64)
	check  time.Duration // how often is looked whether etcd is still the one that was read

	cancel context.CancelFunc
	done   sync.WaitGroup
	legacy atomic.Pointer[view] // answers until there is a copy: see inherit

	mu    sync.RWMutex
	ready bool // there is a copy
	large bool // it would be larger than max: there is none
	lost  bool // the changes do not come at the moment
	keys  []string
	kvs   map[string]*mvccpb.KeyValue
	size  int64
}

const (
	defaultViewSize = 64 << 20
	retryPause      = time.Second
	checkPause      = 30 * time.Second
)

// errTooLarge says that what is below the path is more than a view may hold.
var errTooLarge = errors.New("more than fits into memory")

// errAnew says that etcd has less than what was read of it: it has been restored from a backup, say. It would tell
// nothing until it had as many changes again.
var errAnew = errors.New("etcd has begun anew")

func newView(client func(context.Context) *etcdcv3.Client, path string, max int64, seen func(int64)) *view {
	return &view{client: client, prefix: strings.TrimSuffix(path, "/") + "/", max: max, seen: seen, check: checkPause}
}

func (v *view) start() {
	ctx, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	viewUp.Hold(v.prefix)
	viewKeys.Hold(v.prefix)
	v.done.Go(func() { v.run(ctx) })
}

func (v *view) stop() {
	if v.cancel == nil {
		return
	}
	v.cancel()
	v.cancel = nil
	v.done.Wait()
	viewUp.Release(v.prefix)
	viewKeys.Release(v.prefix)
}

// settled reports whether there is a copy, or will be none.
func (v *view) settled() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.ready || v.large || v.legacy.Load() != nil
}

// run reads all, follows the changes, and begins again when that ends.
func (v *view) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := v.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errTooLarge) {
			v.giveUp()
			return
		}
		v.report(true, err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// once reads all and follows the changes, as long as that goes well.
func (v *view) once(ctx context.Context) error {
	client := v.client(ctx)
	if client == nil {
		return errNotLetIn
	}
	rev, err := v.read(ctx, client)
	if err != nil {
		return err
	}
	return v.follow(ctx, client, rev+1)
}

// giveUp goes back to one request for each query.
func (v *view) giveUp() {
	v.mu.Lock()
	v.ready, v.large, v.keys, v.kvs, v.size = false, true, nil, nil, 0
	v.mu.Unlock()
	v.legacy.Store(nil)
	viewKeys.WithLabelValues(v.prefix).Set(0)
	logger.Warningf("%s holds more than %d MiB: each query asks etcd from now on", v.prefix, v.max>>20)
}

// report tells when the connection is lost, and when it is back.
func (v *view) report(lost bool, err error) {
	v.mu.Lock()
	was := v.lost
	v.lost = lost
	v.mu.Unlock()
	up := 1.0
	if lost {
		up = 0
	}
	viewUp.WithLabelValues(v.prefix).Set(up)
	switch {
	case lost && !was:
		logger.Warningf("Changes below %s cannot be followed: %v", v.prefix, err)
	case was && !lost:
		logger.Infof("Changes below %s are followed again", v.prefix)
	}
}

// read makes a new copy, and returns the revision that it is of.
func (v *view) read(ctx context.Context, client *etcdcv3.Client) (rev int64, err error) {
	kvs, size := map[string]*mvccpb.KeyValue{}, int64(0)
	get := func(from string, opts ...etcdcv3.OpOption) (*etcdcv3.GetResponse, error) {
		page, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		return client.Get(page, from, opts...)
	}
	err = pages(get, v.prefix, func(r *etcdcv3.GetResponse) error {
		if rev == 0 {
			rev = r.Header.GetRevision()
		}
		for _, kv := range r.Kvs {
			kvs[string(kv.Key)] = kv
			size += cost(kv)
		}
		if size > v.max {
			return errTooLarge
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	keys := make([]string, 0, len(kvs))
	for k := range kvs {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	v.mu.Lock()
	v.ready, v.keys, v.kvs, v.size = true, keys, kvs, size
	v.mu.Unlock()
	v.legacy.Store(nil)
	viewKeys.WithLabelValues(v.prefix).Set(float64(len(keys)))
	v.seen(rev)
	return rev, nil
}

// cost is the octets that a key costs, about.
func cost(kv *mvccpb.KeyValue) int64 { return int64(2*len(kv.Key) + len(kv.Value) + 200) }

// follow takes in the changes from a revision on.
func (v *view) follow(ctx context.Context, client *etcdcv3.Client, rev int64) error {
	ctx, cancel := context.WithCancel(etcdcv3.WithRequireLeader(ctx))
	defer cancel()
	v.report(false, nil)
	opened := make(chan etcdcv3.WatchChan, 1)
	go func() { // which waits for as long as etcd is away
		opened <- client.Watch(ctx, v.prefix, etcdcv3.WithPrefix(), etcdcv3.WithRev(rev))
	}()
	var changes etcdcv3.WatchChan
	tick := time.NewTicker(v.check)
	defer tick.Stop()
	for {
		select {
		case changes = <-opened:
		case r, ok := <-changes:
			switch err := r.Err(); {
			case !ok:
				return errors.New("the watch ended")
			case err != nil: // what happened meanwhile may be gone, by a compaction
				return err
			case !v.apply(r.Events):
				return errTooLarge
			}
			rev = max(rev, r.Header.GetRevision())
			v.seen(rev)
			v.report(false, nil)
		case <-tick.C:
			if err := v.look(ctx, client, rev-1); err != nil {
				return err
			}
		}
	}
}

// look looks whether etcd is there, which a watch does not tell: it is made anew, without a word, until etcd is back. It
// returns an error if etcd has not come as far as a revision.
func (v *view) look(ctx context.Context, client *etcdcv3.Client, rev int64) error {
	asking, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := client.Get(asking, v.prefix, etcdcv3.WithCountOnly())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && r.Header.GetRevision() < rev:
		return errAnew
	}
	v.report(err != nil, err)
	return nil
}

// maxSingle is up to how many changes at once each moves its key: among 100,000 keys that takes 0.1 ms, and queries wait
// meanwhile. Whoever deletes all of them makes as many changes at once.
const maxSingle = 100

// apply takes in changes, and reports false if the copy has become too large.
func (v *view) apply(events []*etcdcv3.Event) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	single := len(events) <= maxSingle
	var added []string
	for _, e := range events {
		key := string(e.Kv.Key)
		old := v.kvs[key]
		if old != nil {
			v.size -= cost(old)
		}
		put := e.Type == etcdcv3.EventTypePut
		if put {
			v.kvs[key] = e.Kv
			v.size += cost(e.Kv)
		} else {
			delete(v.kvs, key)
		}
		switch i := sort.SearchStrings(v.keys, key); {
		case put == (old != nil): // it stays where it is, if anywhere
		case !single && put:
			added = append(added, key)
		case !single:
		case put:
			v.keys = slices.Insert(v.keys, i, key)
		default:
			v.keys = slices.Delete(v.keys, i, i+1)
		}
	}
	if !single {
		v.keys = slices.DeleteFunc(append(v.keys, added...), func(key string) bool { return v.kvs[key] == nil })
		slices.Sort(v.keys)
		v.keys = slices.Compact(v.keys)
	}
	viewKeys.WithLabelValues(v.prefix).Set(float64(len(v.keys)))
	return v.size <= v.max
}

// get is the keys at path, or if which says so those below it if there are any. It reports false if there is no copy.
func (v *view) get(path string, which extent) (found []*mvccpb.KeyValue, ok bool) {
	found, ok = v.own(path, which)
	if old := v.legacy.Load(); !ok && old != nil {
		return old.own(path, which)
	}
	return found, ok
}

// own is what get returns of a copy of v's own.
func (v *view) own(path string, which extent) (found []*mvccpb.KeyValue, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.ready || !strings.HasPrefix(strings.TrimSuffix(path, "/")+"/", v.prefix) {
		return nil, false
	}
	if which != itself {
		keys := v.below(path)
		if which == oneBelow {
			keys = keys[:min(1, len(keys))]
		}
		for _, key := range keys {
			found = append(found, v.kvs[key])
		}
		if len(found) > 0 {
			return found, true
		}
	}
	if kv := v.kvs[path]; kv != nil {
		found = append(found, kv)
	}
	return found, true
}

// below is the keys below path. Whoever calls it has a lock.
func (v *view) below(path string) []string {
	prefix := strings.TrimSuffix(path, "/") + "/"
	from := sort.SearchStrings(v.keys, prefix)
	return v.keys[from : from+sort.SearchStrings(v.keys[from:], etcdcv3.GetPrefixRangeEnd(prefix))]
}

// count is how many keys there are below path, as far as there is a copy.
func (v *view) count(path string) int {
	if v = v.known(); v == nil {
		return 0
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.below(path))
}
