package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// ask asks etcd for the keys at path, or if which says so those below it if there are any.
func (e *Etcd) ask(ctx context.Context, path string, which extent, take taking) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	ctx, done := e.patience.Wait(ctx)
	found, err := e.askPatiently(ctx, path, which, take)
	if err = done(err); err == nil && !found {
		err = errKeyNotFound
	}
	return err
}

// askPatiently is ask within the time of ctx; it returns no error if there are no keys.
func (e *Etcd) askPatiently(ctx context.Context, path string, which extent, take taking) (found bool, err error) {
	client := e.admitted(ctx)
	if client == nil {
		return false, errNotLetIn
	}
	if which != itself {
		if found, err = e.askBelow(ctx, client, path, which, take); found || err != nil {
			return found, err
		}
	}
	r, err := getFirst(ctx, client, path)
	if err != nil {
		return false, err
	}
	e.lastRev.see(r.Header.GetRevision())
	take(r.Kvs, len(r.Kvs))
	return len(r.Kvs) > 0, nil
}

// askBelow asks for the keys below path. Few of them need one request; for more the query takes its turn, and keeps
// nothing while it waits for it.
func (e *Etcd) askBelow(ctx context.Context, client *etcdcv3.Client, path string, which extent, take taking) (found bool, err error) {
	if path == "" || path[len(path)-1] != '/' {
		path += "/"
	}
	limit := int64(narrow)
	if which == oneBelow {
		limit = 1
	}
	r, err := getFirst(ctx, client, path, etcdcv3.WithPrefix(), etcdcv3.WithLimit(limit))
	if err != nil {
		return false, err
	}
	e.lastRev.see(r.Header.GetRevision())
	if which == oneBelow || !r.More {
		take(r.Kvs, len(r.Kvs))
		return len(r.Kvs) > 0, nil
	}
	if err := takeTurn(ctx, int(r.Count)); err != nil {
		return false, err
	}
	get := func(from string, opts ...etcdcv3.OpOption) (*etcdcv3.GetResponse, error) {
		return getFirst(ctx, client, from, opts...)
	}
	err = pages(get, path, func(r *etcdcv3.GetResponse) error {
		e.lastRev.see(r.Header.GetRevision())
		found = found || len(r.Kvs) > 0
		take(r.Kvs, int(r.Count))
		return nil
	})
	return found, err
}

const (
	firstRead  = 16      // keys, any of which may have 1.5 MiB
	readAtOnce = 5000    // keys
	pageOctets = 1 << 20 // of keys and values, about
	pageGrowth = 16      // times as many keys in a page as in the one before it
)

// pages reads the keys below prefix, as they were at one time unless that is compacted meanwhile, about as many at a time
// as have pageOctets. It ends with an error of take.
func pages(get func(string, ...etcdcv3.OpOption) (*etcdcv3.GetResponse, error), prefix string, take func(*etcdcv3.GetResponse) error) error {
	limit := int64(firstRead)
	opts := []etcdcv3.OpOption{etcdcv3.WithRange(etcdcv3.GetPrefixRangeEnd(prefix))}
	for from := prefix; ; {
		r, err := get(from, append(slices.Clip(opts), etcdcv3.WithLimit(limit))...)
		if errors.Is(err, rpctypes.ErrCompacted) { // what is there now is as good
			opts = opts[:1]
			r, err = get(from, append(slices.Clip(opts), etcdcv3.WithLimit(limit))...)
		}
		if err != nil {
			return err
		}
		if err := take(r); err != nil || !r.More || len(r.Kvs) == 0 {
			return err
		}
		if from == prefix {
			opts = append(opts, etcdcv3.WithRev(r.Header.GetRevision()))
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
		octets := int64(1)
		for _, kv := range r.Kvs {
			octets += int64(len(kv.Key) + len(kv.Value))
		}
		limit = max(1, min(int64(len(r.Kvs))*pageOctets/octets, limit*pageGrowth, readAtOnce))
	}
}

// getFirst is client.Get, of the member that answers first.
func getFirst(ctx context.Context, client *etcdcv3.Client, key string, opts ...etcdcv3.OpOption) (*etcdcv3.GetResponse, error) {
	return first(ctx, client, func(ctx context.Context) (*etcdcv3.GetResponse, error) { return client.Get(ctx, key, opts...) })
}

const (
	memberTime = 500 * time.Millisecond // for one member, before another one is asked, too
	maxMembers = 5                      // that are asked at once
)

// first asks one member of etcd after the other, as the client takes them in turn, until one has answered: one that hangs
// would keep the queries that it has got until they fail, for the quarter of a minute until its connection is given up.
func first[R any](ctx context.Context, client *etcdcv3.Client, ask func(context.Context) (R, error)) (R, error) {
	members := min(len(client.Endpoints()), maxMembers)
	if members <= 1 {
		return ask(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		reply R
		err   error
	}
	results := make(chan result, members)
	asked, waiting := 0, 0
	another := func() {
		asked, waiting = asked+1, waiting+1
		go func() {
			reply, err := ask(ctx)
			results <- result{reply, err}
		}()
	}
	another()
	late := time.NewTicker(memberTime)
	defer late.Stop()
	for {
		select {
		case r := <-results:
			if waiting--; r.err == nil || waiting == 0 {
				return r.reply, r.err
			}
		case <-late.C:
			if asked < members {
				another()
			}
		}
	}
}
