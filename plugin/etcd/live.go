package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// ask asks etcd for the keys at path, or if recursive is set those below it if there are any.
func (e *Etcd) ask(ctx context.Context, path string, recursive bool) ([]*mvccpb.KeyValue, error) {
	client := e.client()
	if client == nil {
		return nil, errNotLetIn
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if recursive {
		below := path
		if below == "" || below[len(below)-1] != '/' {
			below += "/"
		}
		r, err := client.Get(ctx, below, etcdcv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		e.lastRev.see(r.Header.GetRevision())
		if len(r.Kvs) > 0 {
			return r.Kvs, nil
		}
	}
	r, err := client.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	e.lastRev.see(r.Header.GetRevision())
	if len(r.Kvs) == 0 {
		return nil, errKeyNotFound
	}
	return r.Kvs, nil
}
