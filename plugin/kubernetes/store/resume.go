package store

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A watch is resumed at the version that was reached. That means something only to a server with the same past: one that was
// restored from a copy counts on from there, and gives the same versions to other changes.

// compareTime is how long a server may take to say which version it has come to. Only tests change it.
var compareTime = 10 * time.Second

// compare asks which version the server has come to. One that was restored from a copy is behind ours: it would tell
// nothing until it has come as far again, and never what it has forgotten. One that is there, and does not say, may
// be too busy for lists: watches cost it less, so what it tells there counts.
func (r *reflector) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	meta, err := r.client.List(ctx, r.resource, client.Options{Limit: 1}, func([]byte, lean.Encoding) error { return nil })
	switch {
	case err == nil && wentBack(meta.ResourceVersion, r.version):
		return fmt.Errorf("%w from %s to %s", errBack, r.version, meta.ResourceVersion)
	case err == nil, judge(err, true) != away:
	case errors.As(err, new(apierrors.APIStatus)):
	case connected.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded):
	default:
		return r.failure("list", err)
	}
	return nil
}

// apartTime is how long nothing may be heard of a server that failed until it may be another one. A server tells how far it has
// come each minute or so, and to restore one takes longer than that. Only tests change it.
var apartTime = 75 * time.Second

// hears notes that the server tells of something.
func (r *reflector) hears(now time.Time) {
	r.heard = now
	r.store.stats.heard(now)
}

// estranged gives up the version that was reached if the server failed and was not heard of for long. It may have been
// restored meanwhile, and have passed our version again: nobody could tell.
func (r *reflector) estranged(now time.Time) bool {
	silent := now.Sub(r.heard)
	if !r.failed || silent < apartTime {
		return false
	}
	r.version = ""
	r.missed(fmt.Errorf("nothing was heard for %s", silent.Round(time.Millisecond)))
	return true
}
