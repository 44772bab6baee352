package store

import (
	"context"
	"errors"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// pageSize is how many objects a page of a list has, if the server makes pages.
const pageSize = 500

// listSilence is how long a server may take for the next object of a list. It ends a request itself after a minute, unless it
// hangs. Only tests change it.
var listSilence = 75 * time.Second

// list reads all there is in pages. Before the first sync any version that the server has at
// hand will do ("0"); later it has to be the newest.
func (r *reflector) list(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(listSilence, func() { cancel(errStuck) })
	defer quiet.Stop()
	err := r.pages(ctx, func() { quiet.Reset(listSilence) })
	if err != nil && errors.Is(context.Cause(ctx), errStuck) {
		err = errStuck
	}
	if err != nil {
		return r.failure("list", err)
	}
	return nil
}

// pages reads the pages of a list, and calls heard for each object and each page.
func (r *reflector) pages(ctx context.Context, heard func()) error {
	o := client.Options{Labels: r.labels, Fields: r.fields, Limit: pageSize}
	if !r.synced {
		o.Version = "0"
	}
	for {
		meta, err := r.client.List(ctx, r.resource, o, func(object []byte, e lean.Encoding) error {
			heard()
			return r.item(object, e)
		})
		if err != nil && o.Continue != "" && apierrors.IsResourceExpired(err) {
			// It took too long to get here: once more, in one piece.
			r.writer.begin()
			o.Limit, o.Continue = 0, ""
			continue
		}
		if err != nil {
			return err
		}
		heard()
		if meta.Continue != "" && meta.Continue == o.Continue {
			return errNoProgress
		}
		r.answered()
		if meta.Continue == "" {
			r.complete(orZero(meta.ResourceVersion))
			return nil
		}
		o.Continue, o.Version = meta.Continue, "" // the token says the version
	}
}

// orZero stands in for the version of a server that has none, so that lists and watches go on.
func orZero(version string) string {
	if version == "" {
		return "0"
	}
	return version
}

// item takes in one object of a list.
func (r *reflector) item(object []byte, e lean.Encoding) error {
	r.hears(time.Now())
	if _, ok := r.decode(object, e); ok {
		r.writer.putScratch(false)
	}
	return nil
}

// forbidden tells that the server does not let us do what we asked for.
func forbidden(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
