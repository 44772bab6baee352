package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// ask asks etcd for the keys at path, or if recursive is set those below it if there are any.
func (e *Etcd) ask(ctx context.Context, path string, recursive bool) ([]*mvccpb.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	ctx, done := e.patience.Wait(ctx)
	kvs, err := e.askPatiently(ctx, path, recursive)
	if err = done(err); err == nil && len(kvs) == 0 {
		err = errKeyNotFound
	}
	return kvs, err
}

// askPatiently is ask within the time of ctx; it returns no error if there are no keys.
func (e *Etcd) askPatiently(ctx context.Context, path string, recursive bool) ([]*mvccpb.KeyValue, error) {
	client := e.admitted(ctx)
	if client == nil {
		return nil, errNotLetIn
	}
	if recursive {
		below := path
		if below == "" || below[len(below)-1] != '/' {
			below += "/"
		}
		r, err := getFirst(ctx, client, below, etcdcv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		e.lastRev.see(r.Header.GetRevision())
		if len(r.Kvs) > 0 {
			return r.Kvs, nil
		}
	}
	r, err := getFirst(ctx, client, path)
	if err != nil {
		return nil, err
	}
	e.lastRev.see(r.Header.GetRevision())
	return r.Kvs, nil
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
