package etcd

import (
	"context"
	"time"

	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// letIn makes the client of an etcd that asks for credentials. That takes etcd's answer, so it is done in the background,
// again and again until e is shut down.
func (e *Etcd) letIn(config etcdcv3.Config) {
	ctx, cancel := context.WithCancel(context.Background())
	config.DialTimeout = requestTime
	e.login.cancel = cancel
	e.login.done.Go(func() {
		for ctx.Err() == nil {
			config.Context = ctx
			client, err := etcdcv3.New(config)
			if err == nil {
				e.late.Store(client)
				return
			}
			if ctx.Err() == nil && e.warnOnce.due(err.Error(), time.Now()) {
				logger.Warningf("Logging in: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		}
	})
}
